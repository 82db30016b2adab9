-- A visibility whose message was taken beforehand, and is not being handled yet, ends a quarter of a millisecond before the whole one: for every
-- comparison with whole milliseconds, and rounded, that is the same. Far in the future there is no room for it.
local function beforehand(ending)
  return string.format(ending < 2 ^ 50 and '%.2f' or '%.0f', ending < 2 ^ 50 and ending - 0.25 or ending)
end

local function isUnbegun(score)
  return tonumber(score) % 1 == 0.75
end
