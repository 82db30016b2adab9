-- Have a time in which one instance alone changes something end, where it lasts longer than any: only a stranger can have begun it.
--
-- KEYS[1] lock  any  who changes it
--
-- ARGV[1] most  integer  the longest time, ms
--
-- returns 1 when it was longer, else 0
local left = redis.call('PTTL', KEYS[1])
if left ~= -1 and left <= tonumber(ARGV[1]) then
  return 0
end
return redis.call('PEXPIRE', KEYS[1], ARGV[1])
