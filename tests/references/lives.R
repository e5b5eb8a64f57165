# Expected values of test_lifetimes.py, by R's survival: Rscript lives.R > lives_expected.json
library(survival)
d <- read.csv("lives.csv")
number <- function(x) paste0("[", paste(format(x, digits = 17), collapse = ", "), "]")
said <- function(name, x, last = FALSE)
  cat(sprintf('  "%s": %s%s\n', name, number(x), if (last) "" else ","))
cat("{\n")
cat(sprintf('  "version": "%s, survival %s",\n', R.version$version.string, packageVersion("survival")))
for (late in c(FALSE, TRUE)) {
  y <- if (late) Surv(d$since, d$age, d$died) else Surv(d$age, d$died)
  k <- if (late) "late_" else ""
  fit <- survfit(y ~ 1, conf.type = "log-log", conf.int = 0.9)
  kept <- fit$n.event > 0
  said(paste0(k, "time"), fit$time[kept])
  said(paste0(k, "survival"), fit$surv[kept])
  said(paste0(k, "lower"), fit$lower[kept])
  said(paste0(k, "upper"), fit$upper[kept])
  said(paste0(k, "cumhaz"), fit$cumhaz[kept])
}
for (family in c("weibull", "exponential", "lognormal", "loglogistic")) {
  fit <- survreg(Surv(age, died) ~ 1, data = d, dist = family, control = list(rel.tolerance = 1e-14, maxiter = 200))
  said(family, c(exp(coef(fit)), fit$scale, fit$loglik[1]))
}
test <- survdiff(Surv(age, died) ~ batch, data = d)
said("log_rank", c(test$chisq, length(test$n) - 1))
said("log_rank_expected", test$exp)
table <- summary(survfit(Surv(age, died) ~ 1, data = d), rmean = 20)$table
said("restricted_mean_20", c(table["rmean"], table["se(rmean)"]), last = TRUE)
cat("}\n")
