-- Count what a queue holds, at one moment except for more than 500 buckets. Changes nothing.
--
-- KEYS[1] timeouts     zset  packed entry -> due time, epoch ms
-- KEYS[2] destination  list  elements ready to be taken
-- KEYS[3] quarantine   list  unreadable entries that were set aside
-- KEYS[4] wheel        zset  minute of a bucket -> when the bucket is promoted, epoch ms
--
-- ARGV[1] channel  text     the channel whose subscribers are counted
-- ARGV[2] nowMs    integer  the caller's clock, or -1 for the server's
--
-- returns {now in whole ms as text, pending entries, those of them that are due, earliest due time or "", elements in the
--   destination, elements in the quarantine, subscribers of the channel, the rank of the bucket to go on counting from or -1}
local timeouts = KEYS.timeouts

-- include shared/milliseconds.lua

-- include shared/wheel.lua

-- include shared/names.lua

-- include shared/wheel-count.lua

local now = milliseconds(ARGV.nowMs)
local nowText = string.format('%.0f', now)

local first = redis.call('ZRANGE', timeouts, 0, 0, 'WITHSCORES')[2]
local count, overdue, more = countBuckets(KEYS.wheel, 0, now)
local bucket = redis.pcall('ZRANGE', KEYS.wheel, 0, 0)[1]
-- another program can have written a name that is not a minute
local minute = bucket and #bucket < 13 and string.find(bucket, '^%d+$') and tonumber(bucket)
local start = minute and minute * MINUTE <= 9007199254740991 and string.format('%.0f', minute * MINUTE)
if start and (not first or tonumber(start) < tonumber(first)) then first = start end
local subscribers = redis.pcall('PUBSUB', 'NUMSUB', ARGV.channel)
return {
  nowText, redis.call('ZCARD', timeouts) + count, redis.call('ZCOUNT', timeouts, '-inf', nowText) + overdue, first or '',
  redis.call('LLEN', KEYS.destination), redis.call('LLEN', KEYS.quarantine), subscribers[2] or 0, more or -1
}
