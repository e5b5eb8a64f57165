"""Names of months as the C library writes them in the languages of Europe and the Near East.

Facts of Unicode's CLDR: what abbreviated names begin with. U+FFFD stands for a letter of a file in
Latin-1 that was read as UTF-8. Japanese, Chinese and Korean number their months.
"""

from __future__ import annotations

import re
from functools import lru_cache

# ruff: noqa: RUF001 - letters of other alphabets are meant
_NAMES = {
    1: (
        "ene gen ian jaan jan led oca saus sij sty tammi urt xan yan ιαν січ янв яну јан қаң "
        "հնվ ינו׳ يناير ژانویه ม.ค იან"
    ),
    2: (
        "feb fev févr f\ufffdv helmi lut ots vas veebr velj úno şub φεβ ақп лют феб фев փտվ פבר׳ "
        "فبراير فوریه ก.พ თებ"
    ),
    3: (
        "bře kov maa mac mar mrt mrz márc mär m\ufffdr ožu μάρ μαρ бер мар нау մրտ מרץ مارس มี.ค მარ"
    ),
    4: (
        "abr api apr avr bal dub d’abr huhti kwi nis tra ápr απρ апр квіт сәу ապր אפר׳ آوریل "
        "أبريل เม.ย აპრ"
    ),
    5: (
        "geg kvě mag mai maj may maí mei máj svi touko μάι μαΐ май мам мая мај трав մյս מאי "
        "مايو مه พ.ค მაი"
    ),
    6: (
        "birž cze eka giu haz iun iyn juin jun juuni jún jūn kesä xuño čvn ιουν ιούν июн мау "
        "черв юни јун հնս יוני يونيو ژوئن มิ.ย ივნ"
    ),
    7: (
        "heinä iul iyl juil jul juuli júl jūl liep lug tem uzt xul čvc ιουλ ιούλ июл лип шіл "
        "юли јул հլս יולי يوليو ژوئیه ก.ค ივლ"
    ),
    8: (
        "abu ag août ao\ufffd aug avg avq ağu d’ag elo kol ogo rugp sie ágú αυγ αύγ авг серп там "
        "օգս אוג׳ أغسطس اوت ส.ค აგვ"
    ),
    9: (
        "eyl ira rugs ruj sen sep set syys szept wrz zář σεπ вер сент сеп қыр սեպ ספט׳ سبتمبر "
        "سپتامبر ก.ย სექ"
    ),
    10: (
        "d’oct eki loka oct okt ott out paź spal urr říj οκτ жовт окт қаз հոկ אוק׳ أكتوبر "
        "اکتبر ต.ค ოქტ"
    ),
    11: (
        "aza kas lapkr marras nov noy nóv stu νοέ νοε лист нов ное нояб қар նոյ נוב׳ نوامبر "
        "نوفمبر พ.ย ნოე"
    ),
    12: (
        "abe ara dec dek des dets dez dic dis déc d\ufffdc gru joulu pro δεκ груд дек дец жел դեկ "
        "דצמ׳ دسامبر ديسمبر ธ.ค დეკ"
    ),
}
_TWO_MONTHS = ("lip", "lis", "srp")
"""Another month in Croatian than in Polish or Czech."""
_BEGINNINGS = {
    begin: month for month, names in _NAMES.items() for begin in names.split()
} | dict.fromkeys(_TWO_MONTHS)
_LONGEST_FIRST = sorted(_BEGINNINGS, key=len, reverse=True)
MONTH = rf"(?:(?i:{'|'.join(map(re.escape, _LONGEST_FIRST))})[^\W\d_]*\.?|\d{{1,2}}[月월])"
"""An expression for the name of a month."""


@lru_cache(maxsize=256)
def month_of(name: str) -> int | None:
    """The number of a month; None where the name is none, or that of two.

    Examples
    --------
    >>> month_of("Mär"), month_of("août"), month_of("3月"), month_of("lip"), month_of("node")
    (3, 8, 3, None, None)
    """
    small = name.lower()
    if small[:-1].isdigit() and small[-1] in "月월":
        return int(small[:-1])
    begin = next((begin for begin in _LONGEST_FIRST if small.startswith(begin)), "")
    return _BEGINNINGS.get(begin)
