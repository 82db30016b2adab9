-- From which due time on entries hide an offer for `due`. An entry that is overdue by more than 365 days, such as one at 0.5, comes from another program, which announced
-- nothing; a transfer moves it or sets it aside. Not later, because the announcement of a later time puts off what clients wait for.
local function oldestDue(now, due)
  local oldest = now - 31536000000
  return oldest > 0 and oldest <= due and oldest or 0
end
