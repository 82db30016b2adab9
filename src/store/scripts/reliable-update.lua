-- Give a message that no consumer has another payload; its headers and times stay.
--
-- KEYS[1] messages  hash  id -> record
-- KEYS[2] config    hash  the queue's settings
-- KEYS[3] inFlight  zset  priority and id -> when its visibility ends, epoch ms
-- KEYS[4] due0  zset  id -> when it is visible, epoch ms; priority 0
-- KEYS[5] due1  zset  id -> when it is visible, epoch ms; priority 1
-- KEYS[6] due2  zset  id -> when it is visible, epoch ms; priority 2
-- KEYS[7] due3  zset  id -> when it is visible, epoch ms; priority 3
-- KEYS[8] due4  zset  id -> when it is visible, epoch ms; priority 4
-- KEYS[9] due5  zset  id -> when it is visible, epoch ms; priority 5
-- KEYS[10] due6  zset  id -> when it is visible, epoch ms; priority 6
-- KEYS[11] due7  zset  id -> when it is visible, epoch ms; priority 7
-- KEYS[12] due8  zset  id -> when it is visible, epoch ms; priority 8
-- KEYS[13] due9  zset  id -> when it is visible, epoch ms; priority 9
-- KEYS[14] changes  stream  the queue's changes
-- KEYS[15] due10  zset  id -> when it is visible, epoch ms; messages with a group
--
-- ARGV[1] nowMs    integer  the caller's clock, or -1 for the server's
-- ARGV[2] id       bytes
-- ARGV[3] payload  bytes
-- ARGV[4] client   text     the caller
--
-- returns 1 when it has this payload now, 0 when there is no such message or a consumer has it with another one, -5 when the payload
--   is too large
local messages, inFlight, id, payload = KEYS.messages, KEYS.inFlight, ARGV.id, ARGV.payload
local due = {KEYS.due0, KEYS.due1, KEYS.due2, KEYS.due3, KEYS.due4, KEYS.due5, KEYS.due6, KEYS.due7, KEYS.due8, KEYS.due9, KEYS.due10}

-- include shared/milliseconds.lua

-- include shared/aside.lua

-- include shared/locate.lua

-- include shared/record.lua

-- include shared/settings.lua

-- include shared/change-log.lua

local settings = stored(KEYS.config, 'maxMessageBytes', 'changes')
local maxBytes = setting(settings.maxMessageBytes, 1)
if maxBytes and #payload > maxBytes then return -5 end
local record = redis.call('HGET', messages, id)
local priority, visible, isTaken = locate(due, inFlight, id)
if not record or not priority then return 0 end
local _, _, headers, rest = readMeta(record)
-- also compares the payload, because the script may be sent again while a consumer has the message that the first attempt changed
if isTaken and visible > milliseconds(ARGV.nowMs) then return string.sub(record, rest + headers) == payload and 1 or 0 end
local updated = string.sub(record, 1, rest + headers - 1) .. payload
redis.call('HSET', messages, id, updated)
local log = openLog(settings.changes)
if log then
  noteChange(log, 'u,,,', id, log.records and updated)
  writeChanges(log, KEYS.changes, KEYS.config, ARGV.client)
end
return 1
