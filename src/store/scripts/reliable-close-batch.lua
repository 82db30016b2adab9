-- Close a batch, so that no message can be added to it any more. It finishes when all of its messages have ended, now if they have already;
-- then its last message is added. A closed batch stays unchanged. But if
-- it has pending messages although no batch has a message, the script counts these as removed.
--
-- KEYS[1] messages   hash    id -> record
-- KEYS[2] config     hash    the queue's settings
-- KEYS[3] inFlight   zset    priority and id -> when its visibility ends, epoch ms
-- KEYS[4] changes    stream  the queue's changes
-- KEYS[5] batches    hash  the batch of a message, the counts of a batch, its last message: see shared/batches.lua
-- KEYS[6] batchesAt  zset  finished batch -> when, epoch ms
-- KEYS[7] deliveries  hash  id -> "<attempts>", in flight "<attempts> <token>"
--
-- ARGV[1] nowMs   integer  the caller's clock, or -1 for the server's
-- ARGV[2] client  text     the caller
-- ARGV[3] name    text
-- ARGV[4] last    bytes    the last message as it is kept, or "" for none
-- ARGV[5] size    integer  bytes of its payload
--
-- returns {0, or -5 when the payload is too large and nothing was changed, the counts of the batch}
local messages, config, inFlight, deliveries = KEYS.messages, KEYS.config, KEYS.inFlight, KEYS.deliveries

-- include shared/milliseconds.lua

-- include shared/record.lua

-- include shared/settings.lua

-- include shared/names.lua

-- include shared/change-log.lua

-- include shared/limits.lua

-- include shared/ends.lua

-- include shared/beforehand.lua

-- include shared/batches.lua

-- include shared/empty-batches.lua

local now, name = milliseconds(ARGV.nowMs), ARGV.name
-- fails, before any change, if a key is of another type
redis.call('HLEN', KEYS.batches)
redis.call('HLEN', messages)
redis.call('ZCARD', inFlight)
redis.call('HLEN', config)
local settings = stored(config, 'changes', 'maxMessageBytes', 'batched')
local log = openLog(settings.changes)
local batches = {key = KEYS.batches, at = KEYS.batchesAt, messages = messages, deliveries = deliveries, inFlight = inFlight, now = now, log = log}
local found = readBatch(batches, name)
local batch = found or newBatch(now)
local isNew = batch.state == 'o'
if isNew then
  local maxBytes = setting(settings.maxMessageBytes, 1)
  if maxBytes and tonumber(ARGV.size) > maxBytes then return {-5, ''} end
  if not settings.batched then redis.call('HSET', config, 'batched', '1') end
  if ARGV.last ~= '' then redis.call('HSET', batches.key, 'l' .. name, ARGV.last) end
  if not found then countUnfinished(batches, 1) end
  batch.state, batch.closed = 'c', string.format('%.0f', now)
end
if batch.state == 'c' and batch.pending > 0 and not isNew and areBatchesEmpty(batches) then removePending(batch) end
if batch.state == 'c' and (batch.pending == 0 or isNew) then
  putBatch(batches, name, batch)
  forgetBatches(batches)
  writeChanges(log, KEYS.changes, config, ARGV.client)
end
return {0, countsOf(batch)}
