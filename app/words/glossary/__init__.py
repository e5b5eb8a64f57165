"""Terms of the pages of one section; those of several sections are in `app.words.terms`."""
