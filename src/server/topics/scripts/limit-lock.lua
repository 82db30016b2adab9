-- Limit the time of a lock that lasts longer than any instance's: another program has written it.
--
-- KEYS[1] lock  any  the token of the instance that has the lock
--
-- ARGV[1] most  integer  the longest time, ms
--
-- returns 1 if it was longer, else 0
local left = redis.call('PTTL', KEYS.lock)
if left ~= -1 and left <= tonumber(ARGV.most) then
  return 0
end
return redis.call('PEXPIRE', KEYS.lock, ARGV.most)
