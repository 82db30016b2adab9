-- Remove all messages, and the records of duplicates, of completed messages and of batches.
--
-- KEYS[1] messages    hash  id -> record
-- KEYS[2] deliveries  hash  id -> "<attempts>", in flight "<attempts> <token>"
-- KEYS[3] failures    hash  id -> a line for each failed attempt
-- KEYS[4] once        zset  deduplication mark -> until when, epoch ms
-- KEYS[5] inFlight    zset  priority and id -> when its visibility ends, epoch ms
-- KEYS[6] due0  zset  id -> when it is visible, epoch ms; priority 0
-- KEYS[7] due1  zset  id -> when it is visible, epoch ms; priority 1
-- KEYS[8] due2  zset  id -> when it is visible, epoch ms; priority 2
-- KEYS[9] due3  zset  id -> when it is visible, epoch ms; priority 3
-- KEYS[10] due4  zset  id -> when it is visible, epoch ms; priority 4
-- KEYS[11] due5  zset  id -> when it is visible, epoch ms; priority 5
-- KEYS[12] due6  zset  id -> when it is visible, epoch ms; priority 6
-- KEYS[13] due7  zset  id -> when it is visible, epoch ms; priority 7
-- KEYS[14] due8  zset  id -> when it is visible, epoch ms; priority 8
-- KEYS[15] due9  zset  id -> when it is visible, epoch ms; priority 9
-- KEYS[16] completed    hash  id -> record of a completed message
-- KEYS[17] completedAt  zset  id -> when it was completed, epoch ms
-- KEYS[18] config   hash    the queue's settings
-- KEYS[19] changes  stream  the queue's changes
-- KEYS[20] due10  zset  id -> when it is visible, epoch ms; messages with a group
-- KEYS[21] groupOrder  zset  group, due time and id of the messages with a group, in the order of their bytes
-- KEYS[22] groupTurns  zset  group -> its turn
-- KEYS[23] groupWakes  zset  group -> when it can have a turn, epoch ms
-- KEYS[24] groups  hash  group -> its claims, and when they were
-- KEYS[25] batches    hash  the batch of a message, the counts of a batch, its last message: see shared/batches.lua
-- KEYS[26] batchesAt  zset  finished batch -> when, epoch ms
--
-- ARGV[1] client  text  the caller
--
-- returns how many of the first fifteen keys existed
local config, changes = KEYS.config, KEYS.changes

-- include shared/change-log.lua

local log = logOf(config)
local gone = redis.call('UNLINK', KEYS.messages, KEYS.deliveries, KEYS.failures, KEYS.once, KEYS.inFlight, KEYS.due0, KEYS.due1, KEYS.due2, KEYS.due3, KEYS.due4, KEYS.due5,
  KEYS.due6, KEYS.due7, KEYS.due8, KEYS.due9)
redis.call('UNLINK', KEYS.completed, KEYS.completedAt, KEYS.due10, KEYS.groupOrder, KEYS.groupTurns, KEYS.groupWakes, KEYS.groups, KEYS.batches, KEYS.batchesAt)
if log and gone > 0 then
  noteChange(log, 'c,,,', '')
  writeChanges(log, changes, config, ARGV.client)
end
return gone
