-- Ask for how long nothing goes to an endpoint, without sending anything there.
--
-- KEYS[1] endpoint  hash  pausedUntil, openUntil: epoch ms
--
-- returns the milliseconds; 0 where a webhook may ask to go
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local stored = redis.call('HMGET', KEYS[1], 'pausedUntil', 'openUntil')
return math.max(0, math.ceil(math.max(tonumber(stored[1]) or 0, tonumber(stored[2]) or 0) - now))
