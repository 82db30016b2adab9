-- Count the messages in at most 500 buckets. Changes nothing.
--
-- KEYS[1] wheel  zset  minute of a bucket -> when the bucket is promoted, epoch ms
--
-- ARGV[1] nowMs  integer  the caller's clock, or -1 for the server's
-- ARGV[2] from   integer  the rank of the first bucket
--
-- returns {messages, those whose minute has begun, the rank to go on from or -1}
-- include shared/milliseconds.lua

-- include shared/wheel.lua

-- include shared/names.lua

-- include shared/wheel-count.lua

local count, overdue, more = countBuckets(KEYS.wheel, tonumber(ARGV.from), milliseconds(ARGV.nowMs))
return {count, overdue, more or -1}
