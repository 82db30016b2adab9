-- The end of the visibility of a prefetched message that is not being handled yet, a quarter of a millisecond before the whole one: equal
-- to it in every comparison with whole milliseconds, and when rounded. A time far in the future has no room for the fraction.
local function beforehand(ending)
  return string.format(ending < 2 ^ 50 and '%.2f' or '%.0f', ending < 2 ^ 50 and ending - 0.25 or ending)
end

local function isUnbegun(score)
  return tonumber(score) % 1 == 0.75
end
