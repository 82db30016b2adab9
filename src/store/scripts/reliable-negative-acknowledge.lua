-- Give unhandled messages back, if their visibility has not ended and no other client has claimed them since: to be
-- delivered again after a delay, or to the dead letters. A message that reached its delivery limit goes to these too. If messages are
-- large, it gives back only the first of them.
--
-- KEYS[1] messages      hash  id -> record
-- KEYS[2] deliveries    hash  id -> "<attempts>", in flight "<attempts> <token>"
-- KEYS[3] failures      hash  id -> a line for each failed attempt
-- KEYS[4] config        hash  the queue's settings
-- KEYS[5] deadMessages  hash  `messages` of the dead-letter queue
-- KEYS[6] deadFailures  hash  `failures` of the dead-letter queue
-- KEYS[7] deadDue       zset  `due` of the dead-letter queue
-- KEYS[8] inFlight      zset  priority and id -> when its visibility ends, epoch ms
-- KEYS[9] ticks  zset  name of a repeat -> when its next message has to be prepared, epoch ms
-- KEYS[10] due0  zset  id -> when it is visible, epoch ms; priority 0
-- KEYS[11] due1  zset  id -> when it is visible, epoch ms; priority 1
-- KEYS[12] due2  zset  id -> when it is visible, epoch ms; priority 2
-- KEYS[13] due3  zset  id -> when it is visible, epoch ms; priority 3
-- KEYS[14] due4  zset  id -> when it is visible, epoch ms; priority 4
-- KEYS[15] due5  zset  id -> when it is visible, epoch ms; priority 5
-- KEYS[16] due6  zset  id -> when it is visible, epoch ms; priority 6
-- KEYS[17] due7  zset  id -> when it is visible, epoch ms; priority 7
-- KEYS[18] due8  zset  id -> when it is visible, epoch ms; priority 8
-- KEYS[19] due9  zset  id -> when it is visible, epoch ms; priority 9
-- KEYS[20] changes      stream  the queue's changes
-- KEYS[21] deadConfig   hash    `config` of the dead-letter queue
-- KEYS[22] deadChanges  stream  `changes` of the dead-letter queue
-- KEYS[23] completed    hash  id -> record of a completed message
-- KEYS[24] completedAt  zset  id -> when it was completed, epoch ms
-- KEYS[25] deadDeliveries  hash  `deliveries` of the dead-letter queue
-- KEYS[26] due10  zset  id -> when it is visible, epoch ms; messages with a group
-- KEYS[27] groupOrder  zset  group, due time and id of the messages with a group, in the order of their bytes
-- KEYS[28] groupTurns  zset  group -> its turn
-- KEYS[29] groupWakes  zset  group -> when it can have a turn, epoch ms
-- KEYS[30] groups  hash  group -> its claims, and when they were
-- KEYS[31] batches    hash  the batch of a message, the counts of a batch, its last message: see shared/batches.lua
-- KEYS[32] batchesAt  zset  finished batch -> when, epoch ms
-- KEYS[33] deadBatches    hash  `batches` of the dead-letter queue
-- KEYS[34] deadBatchesAt  zset  `batchesAt` of the dead-letter queue
-- KEYS[35] deadInFlight   zset  `inFlight` of the dead-letter queue
--
-- ARGV[1] channel      text     announces when messages become visible
-- ARGV[2] deadChannel  text     `channel` of the dead-letter queue
-- ARGV[3] nowMs        integer  the caller's clock, or -1 for the server's
-- ARGV[4] how          text     'failed', 'rejected', or 'released': as if it had not been delivered
-- ARGV[5] delayMs      integer  the time until it is visible again, unless it is rejected
-- ARGV[6] reason       text     one line for the history
-- ARGV[7] client       text     the caller
-- ARGV[8..] handled    bytes*   for each message two: its priority and id, "<attempts> <token>"
--
-- returns for each message 1 when it will be delivered again, 2 when it is a dead letter (or gone, where the queue keeps none), 3 when the
--   keys of the dead letters are of another type, so that it will be tried again, 0 when it was no longer the caller's; for at least one
--   message; -3 alone when the time exceeds 2^53-1
local messages, deliveries, failures, config, inFlight, ticks = KEYS.messages, KEYS.deliveries, KEYS.failures, KEYS.config, KEYS.inFlight, KEYS.ticks
local due = {KEYS.due0, KEYS.due1, KEYS.due2, KEYS.due3, KEYS.due4, KEYS.due5, KEYS.due6, KEYS.due7, KEYS.due8, KEYS.due9, KEYS.due10}
local queue = {messages = messages, deliveries = deliveries, failures = failures}
local dead = {messages = KEYS.deadMessages, failures = KEYS.deadFailures, due = KEYS.deadDue, config = KEYS.deadConfig, changes = KEYS.deadChanges, deliveries = KEYS.deadDeliveries, batches = KEYS.deadBatches}
local LATER_MS = 60000
local channel, deadChannel, how, reason, client = ARGV.channel, ARGV.deadChannel, ARGV.how, ARGV.reason, ARGV.client

-- include shared/milliseconds.lua

-- include shared/oldest-due.lua

-- include shared/announce.lua

-- include shared/record.lua

-- include shared/attempts.lua

-- include shared/failures.lua

-- include shared/progress-line.lua

-- include shared/note-failure.lua

-- include shared/change-log.lua

-- include shared/dead-letter.lua

-- include shared/bypass-oom-check.lua

-- include shared/settings.lua

-- include shared/names.lua

-- include shared/surplus.lua

-- include shared/ends.lua

-- include shared/whole-messages.lua

-- include shared/has-batches.lua

-- include shared/drop-dead.lua

-- include shared/limits.lua

-- include shared/rate-limit.lua

-- include shared/groups.lua

local now = milliseconds(ARGV.nowMs)
local visible = now + tonumber(ARGV.delayMs)
if visible > 9007199254740991 then return {-3} end
local settings = stored(config, 'changes', 'deliveryLimit', 'deadLetters', 'keepCompleted', 'concurrency', 'batched')
local isBatched = hasBatches(settings, KEYS.batches)
local groups = openGroups({inFlight = inFlight, schedule = KEYS.due10, order = KEYS.groupOrder, turns = KEYS.groupTurns, wakes = KEYS.groupWakes, states = KEYS.groups}, config, now)
local wasAtLimit = isAtLimit(settings, inFlight, now)
local log = openLog(settings.changes)
local limitOfAll = setting(settings.deliveryLimit, 1, 1000000) or 10
if settings.deadLetters == '0' then dead = nil end

-- Before anything is changed, so that an error (no right to publish) leaves everything as it was.
if how ~= 'rejected' then announce({inFlight, KEYS.groupWakes, unpack(due, 1, 10)}, ticks, channel, visible, now) end
bypassOomCheck(inFlight)

local reply, deadLettered = {}, 0
local names, claimsEnded = {}, {}
local ended = (settings.keepCompleted or isBatched) and {}
for at = 8, #ARGV, 2 do
  local member, delivery = ARGV[at], ARGV[at + 1]
  local id = string.sub(member, 2)
  local ends = tonumber(redis.call('ZSCORE', inFlight, member) or 0)
  local result = 0
  if ends > now and deliveryOf(deliveries, id) == delivery then
    if isTooMuch(messages, id, MOST_BYTES) then break end
    local attempts = attemptsOf(delivery)
    local priority = priorityOf(member)
    local _, limit, _, _, group = readMeta(redis.call('HGET', messages, id) or '')
    result = 1
    if how ~= 'released' then noteFailure(failures, id, attempts, now, reason) end
    if how == 'rejected' or (how == 'failed' and attempts >= (limit or limitOfAll)) then result = 2 end
    if result == 2 then
      if deadLetter(queue, dead, id, now) then
        result = 3
      else
        deadLettered = deadLettered + 1
        if ended then ended[#ended + 1] = id end
      end
    end
    if result ~= 2 then
      if how == 'released' then attempts = attempts - 1 end
      if attempts > 0 then redis.call('HSET', deliveries, id, attempts) else redis.call('HDEL', deliveries, id) end
      local again = string.format('%.0f', result == 3 and now + LATER_MS or visible)
      if priority == GROUPED and group then addToGroup(groups, group, tonumber(again), id)
      else redis.call('ZADD', due[priority + 1], again, id) end
      if log then noteChange(log, changeHead(how == 'released' and 'l' or 'f', attempts, again), id, how ~= 'released' and reason) end
    elseif log then
      noteChange(log, changeHead('d', attempts), id, reason)
    end
    redis.call('ZREM', inFlight, member) -- the last step: after an error above it comes back when its visibility ends
    if priority == GROUPED and group then
      if not claimsEnded[group] then names[#names + 1] = group end
      claimsEnded[group] = (claimsEnded[group] or 0) - 1
    end
  end
  reply[#reply + 1] = result
end
local _, areCalled = pcall(refreshGroups, groups, names, claimsEnded) -- a key of another type prevents no later step
wasAtLimit = wasAtLimit or areCalled == true
local dropped
if deadLettered > 0 then dropped = dropDead(config, dead, deadLettered, now) end
if isBatched or dropped then
-- include shared/beforehand.lua

-- include shared/batches.lua

  if isBatched then
    leaveBatches({key = KEYS.batches, at = KEYS.batchesAt, messages = messages, deliveries = deliveries, inFlight = inFlight, now = now, log = log}, ended, 'dead')
  end
  if dropped then
    leaveBatches({key = KEYS.deadBatches, at = KEYS.deadBatchesAt, messages = dead.messages, deliveries = dead.deliveries, inFlight = KEYS.deadInFlight, now = now, log = dead.log}, dropped, 'removed')
  end
end
writeChanges(log, KEYS.changes, config, client)
if settings.keepCompleted then
  forgetCompleted(KEYS.completed, KEYS.completedAt, ended)
  publishEnds(messages, ended)
end
if wasAtLimit then publishSlot(messages, now) end
if deadLettered > 0 and dead then
  writeChanges(dead.log, dead.changes, dead.config, client)
  redis.pcall('PUBLISH', deadChannel, string.format('%.0f', now)) -- its consumers sweep
end
return reply
