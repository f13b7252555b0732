-- Whose budgets of which periods are forecast.
SELECT period, account FROM warehouse.budget_vs_actual
WHERE cluster = :cluster AND period BETWEEN :first_period AND :last_period
ORDER BY period, account
