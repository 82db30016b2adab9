-- Cancel the entry of a ticket of a queue of the wheel layout. Until its bucket is promoted the entry is in it, because a ticket proves
-- that it was added, so the script does not read the bucket. It adds the id to the cancelled ones of the minute, which the promotion
-- checks. These are removed with their bucket, and have no expiry of their own: a server that evicts expiring keys would bring the
-- cancelled messages back.
--
-- KEYS[1] timeouts  zset  packed entry -> due time, epoch ms
-- KEYS[2] wheel     zset  minute of a bucket -> when the bucket is promoted, epoch ms
--
-- ARGV[1] nowMs   integer  the caller's clock, or -1 for the server's
-- ARGV[2] due     integer  the due time in the ticket
-- ARGV[3] prefix  bytes    what the entry starts with: the length of the id, and the id
--
-- returns 1 when cancelled, 0 when it was cancelled before or is not pending, -3 when its bucket is being promoted: continue the promotion,
--   and call again
local timeouts, wheel, due, prefix = KEYS.timeouts, KEYS.wheel, ARGV.due, ARGV.prefix

-- include shared/find-entry.lua

-- include shared/milliseconds.lua

-- include shared/wheel.lua

local entry, number = findEntry(timeouts, due, prefix), math.floor(tonumber(due) / MINUTE)
local minute = string.format('%.0f', number)
if entry then return redis.call('ZREM', timeouts, entry) end
if not redis.call('ZSCORE', wheel, minute) and not restoreBucket(wheel, number) then return 0 end
redis.call('ZREM', wheel, '-') -- takes no memory: at maxmemory Redis refuses only the first write of a script
if number <= horizonOf(wheel, milliseconds(ARGV.nowMs)) then return awaitsPromotion(wheel, number) and -3 or 0 end
local gone = wheelKey(wheel, 'gone-' .. minute)
local added = redis.call('SADD', gone, prefix)
redis.pcall('PERSIST', gone) -- the expiry that another program has set would bring the messages back
return added
