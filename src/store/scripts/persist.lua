-- Remove the expiry of the keys of one object.
--
-- KEYS[1] first   any  a key of the object
-- KEYS[2] second  any  the other key; the same again if the object has one key
--
-- returns 1 when one of them would have expired else 0
local first = redis.call('PERSIST', KEYS.first)
local second = redis.call('PERSIST', KEYS.second)
return math.max(first, second)
