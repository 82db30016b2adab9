-- From which due time on earlier entries make the announcement of `due` needless. One that is overdue by more than 365 days, such as one at
-- 0.5, comes from another program, which announced nothing; a transfer or a poll handles it. Later ones count, because the announcement of
-- a later time puts off what clients wait for.
local function oldestDue(now, due)
  local oldest = now - 31536000000
  return oldest > 0 and oldest <= due and oldest or 0
end
