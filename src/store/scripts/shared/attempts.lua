-- How often a message was delivered. A number that no script has written counts as none: to read millions of digits takes seconds.
local function attemptsOf(delivery)
  local digits = delivery and string.match(string.sub(delivery, 1, 64), '^%d+')
  return digits and #digits <= 16 and tonumber(digits) or 0
end
