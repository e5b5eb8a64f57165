# Expected values of test_hazards.py, by R's survival: Rscript hazards.R > hazards_expected.json
suppressMessages(library(survival))
d <- read.csv("hazards.csv")
control <- coxph.control(eps = 1e-13, toler.chol = 1e-14, iter.max = 100, outer.max = 100)
formula <- Surv(begin, end, failed) ~ age + old + hot + offset(log(exposure))
cox <- coxph(formula, d, ties = "efron", control = control)
given <- coxph(update(formula, . ~ . + frailty(node, distribution = "gamma", sparse = FALSE, theta = 0.5)),
               d, ties = "efron", control = control)
found <- coxph(update(formula, . ~ . + frailty(node, distribution = "gamma", sparse = FALSE, eps = 1e-11)),
               d, ties = "efron", control = control)
number <- function(x) paste0("[", paste(format(x, digits = 15), collapse = ", "), "]")
errors <- function(fit) sqrt(diag(vcov(fit)))[1:3]
cat("{\n")
cat(sprintf('  "version": "%s, survival %s",\n', R.version$version.string, packageVersion("survival")))
cat(sprintf('  "coefficients": %s,\n  "errors": %s,\n', number(coef(cox)), number(errors(cox))))
cat(sprintf('  "log_likelihoods": %s,\n', number(cox$loglik)))
cat(sprintf('  "steady": %s,\n', number(cox.zph(cox, transform = "km")$table[, 3])))
cat(sprintf('  "given": %s,\n  "given_errors": %s,\n', number(coef(given)[1:3]), number(errors(given))))
cat(sprintf('  "found": %s,\n  "found_errors": %s,\n', number(coef(found)[1:3]), number(errors(found))))
history <- found$history[[1]]
cat(sprintf('  "variance": %s,\n  "integrated": %s\n', number(history$theta), number(history$c.loglik)))
cat("}\n")
