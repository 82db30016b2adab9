-- Count what a queue holds, everything at one moment. Changes nothing.
--
-- KEYS[1] timeouts     zset  packed entry -> due time, epoch ms
-- KEYS[2] destination  list  elements ready to be taken
-- KEYS[3] quarantine   list  what could not be read
--
-- ARGV[1] channel  text     the channel whose subscribers are counted
-- ARGV[2] nowMs    integer  the caller's clock, or -1 for the server's
--
-- returns {now in whole ms as text, pending entries, those of them that are due, earliest due time or "", elements in the
--   destination, elements in the quarantine, subscribers of the channel}
local timeouts = KEYS[1]

-- include shared/milliseconds.lua

local now = milliseconds(ARGV[2])
local nowText = string.format('%.0f', now)

local first = redis.call('ZRANGE', timeouts, 0, 0, 'WITHSCORES')[2]
local subscribers = redis.pcall('PUBSUB', 'NUMSUB', ARGV[1])
return {
  nowText, redis.call('ZCARD', timeouts), redis.call('ZCOUNT', timeouts, '-inf', nowText), first or '',
  redis.call('LLEN', KEYS[2]), redis.call('LLEN', KEYS[3]), subscribers[2] or 0
}
