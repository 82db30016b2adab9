-- Ask for how long an endpoint gets no webhooks, without letting one through.
--
-- KEYS[1] endpoint  any  a hash: pausedUntil, openUntil: epoch ms
--
-- returns the milliseconds; 0 if a webhook may ask to go
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

-- include shared/stored-times.lua

local stored = storedOf(KEYS.endpoint, 'pausedUntil', 'openUntil')
return math.max(0, math.ceil(math.max(timeOf(stored[1], now), timeOf(stored[2], now)) - now))
