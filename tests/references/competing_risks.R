# Expected values of test_competing_risks.py, by R's cmprsk: Rscript competing_risks.R > competing_risks_expected.json
suppressMessages(library(cmprsk))
d <- read.csv("lives.csv")
d$cause[is.na(d$cause)] <- ""
code <- ifelse(d$cause == "link", 1, ifelse(d$cause == "memory", 2, 0))
at <- c(2, 5, 10, 20)
f <- timepoints(cuminc(d$age, code), at)
g <- cuminc(d$age, code, group = d$batch)$Tests
number <- function(x) paste0("[", paste(format(x, digits = 17), collapse = ", "), "]")
cat("{\n")
cat(sprintf('  "version": "%s, cmprsk %s",\n', R.version$version.string, packageVersion("cmprsk")))
cat(sprintf('  "at": %s,\n', number(at)))
for (i in 1:2) {
  cause <- c("link", "memory")[i]
  cat(sprintf('  "%s": %s,\n', cause, number(f$est[i, ])))
  cat(sprintf('  "%s_variance": %s,\n', cause, number(f$var[i, ])))
  cat(sprintf('  "%s_gray": %s%s\n', cause, number(g[i, ]), if (i == 2) "" else ","))
}
cat("}\n")
