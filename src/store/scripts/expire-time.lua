-- Return when a key expires. Changes nothing.
--
-- KEYS[1] key  any  the key
--
-- returns epoch ms as text, -1 when it does not expire, -2 when it does not exist
local exact = redis.pcall('PEXPIRETIME', KEYS.key)
if type(exact) == 'number' then
  if exact < 0 then return exact end
  return string.format('%.0f', exact)
end
-- before Redis 7.0, to the millisecond
local remaining = redis.call('PTTL', KEYS.key)
if remaining < 0 then return remaining end
local time = redis.call('TIME')
return string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000) + remaining)
