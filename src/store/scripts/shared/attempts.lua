-- How often a message was delivered. What no script has written counts as none: to read millions of digits takes seconds.
local MOST_KNOWN = 64
local function attemptsOf(delivery)
  local digits = delivery and #delivery <= MOST_KNOWN and string.match(delivery, '^%d+')
  return digits and #digits <= 16 and tonumber(digits) or 0
end
