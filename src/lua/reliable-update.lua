-- Give a message another payload; its headers and times stay. Who has got it keeps what it got.
--
-- KEYS[1] messages  hash  id -> record
-- KEYS[2] config    hash  what `setConfig` and pausing say
--
-- ARGV[1] id       bytes
-- ARGV[2] payload  bytes
--
-- returns 1, 0 when there is no such message, -5 when the payload is too large
local messages, id, payload = KEYS[1], ARGV[1], ARGV[2]

-- include shared/record.lua

local maxBytes = tonumber(redis.call('HGET', KEYS[2], 'maxMessageBytes') or '')
if maxBytes and #payload > maxBytes then return -5 end
local record = redis.call('HGET', messages, id)
if not record then return 0 end
local _, _, headers, rest = readMeta(record)
redis.call('HSET', messages, id, string.sub(record, 1, rest + headers - 1) .. payload)
return 1
