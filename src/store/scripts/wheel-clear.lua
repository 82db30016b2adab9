-- Delete the pending messages of a queue, with at most 100 of its buckets. The horizon stays, so that messages of a minute whose promotion
-- has begun do not get a bucket again.
--
-- KEYS[1] timeouts  zset  packed entry -> due time, epoch ms
-- KEYS[2] order     list  packed entries in offer order
-- KEYS[3] wheel     zset  minute of a bucket -> when the bucket is promoted, epoch ms
--
-- returns {keys deleted, whether there are more buckets}
local wheel = KEYS.wheel

-- include shared/wheel.lua

-- include shared/names.lua

local deleted = redis.call('UNLINK', KEYS.timeouts, KEYS.order)
local minutes = namesOf(100, function(many, from) return redis.pcall('ZRANGE', wheel, from, from + many - 1) end)
if minutes.err or #minutes == 0 then return {deleted + redis.call('UNLINK', wheel), 0} end
for _, minute in ipairs(minutes) do
  if #minute < 13 then -- a longer name is not a minute: another program wrote it
    deleted = deleted + redis.call('UNLINK', wheelKey(wheel, 'wheel-' .. minute), wheelKey(wheel, 'gone-' .. minute))
  end
end
redis.call('ZREM', wheel, unpack(minutes))
return {deleted, redis.call('ZCARD', wheel) > 0 and 1 or 0}
