-- Move messages that no consumer has from one priority of a queue to another queue of the same cluster slot, where they are
-- visible at once and begin anew: without attempts, failures and batch. A message whose id the other queue has stays here; a record
-- there that is in no schedule and not in flight counts as absent. If messages are large, it moves only the first of them.
--
-- KEYS[1] messages          hash  id -> record
-- KEYS[2] deliveries        hash  id -> "<attempts>", in flight "<attempts> <token>"
-- KEYS[3] failures          hash  id -> a line for each failed attempt
-- KEYS[4] due               zset  id -> when it is visible, epoch ms
-- KEYS[5] targetMessages    hash  `messages` of the other queue
-- KEYS[6] targetDue         zset  `due` of the other queue
-- KEYS[7] config            hash    the queue's settings
-- KEYS[8] changes           stream  the queue's changes
-- KEYS[9] targetConfig      hash    `config` of the other queue
-- KEYS[10] targetChanges    stream  `changes` of the other queue
-- KEYS[11] completed    hash  id -> record of a completed message
-- KEYS[12] completedAt  zset  id -> when it was completed, epoch ms
-- KEYS[13] due10  zset  id -> when it is visible, epoch ms; messages with a group
-- KEYS[14] groupOrder  zset  group, due time and id of the messages with a group, in the order of their bytes
-- KEYS[15] groupTurns  zset  group -> its turn
-- KEYS[16] groupWakes  zset  group -> when it can have a turn, epoch ms
-- KEYS[17] groups  hash  group -> its claims, and when they were
-- KEYS[18] targetDue10       zset  `due10` of the other queue
-- KEYS[19] targetGroupOrder  zset  `groupOrder` of the other queue
-- KEYS[20] targetGroupTurns  zset  `groupTurns` of the other queue
-- KEYS[21] targetGroupWakes  zset  `groupWakes` of the other queue
-- KEYS[22] targetGroups      hash  `groups` of the other queue
-- KEYS[23] inFlight          zset  priority and id -> when its visibility ends, epoch ms
-- KEYS[24] targetInFlight    zset  `inFlight` of the other queue
-- KEYS[25] batches    hash  the batch of a message, the counts of a batch, its last message: see shared/batches.lua
-- KEYS[26] batchesAt  zset  finished batch -> when, epoch ms
-- KEYS[27] targetDeliveries  hash  `deliveries` of the other queue
-- KEYS[28] targetFailures    hash  `failures` of the other queue
-- KEYS[29] targetDue0  zset  `due0` of the other queue: id -> when it is visible, epoch ms
-- KEYS[30] targetDue1  zset  `due1` of the other queue: id -> when it is visible, epoch ms
-- KEYS[31] targetDue2  zset  `due2` of the other queue: id -> when it is visible, epoch ms
-- KEYS[32] targetDue3  zset  `due3` of the other queue: id -> when it is visible, epoch ms
-- KEYS[33] targetDue4  zset  `due4` of the other queue: id -> when it is visible, epoch ms
-- KEYS[34] targetDue5  zset  `due5` of the other queue: id -> when it is visible, epoch ms
-- KEYS[35] targetDue6  zset  `due6` of the other queue: id -> when it is visible, epoch ms
-- KEYS[36] targetDue7  zset  `due7` of the other queue: id -> when it is visible, epoch ms
-- KEYS[37] targetDue8  zset  `due8` of the other queue: id -> when it is visible, epoch ms
-- KEYS[38] targetDue9  zset  `due9` of the other queue: id -> when it is visible, epoch ms
--
-- ARGV[1] targetChannel  text     announces when messages become visible there
-- ARGV[2] nowMs          integer  the caller's clock, or -1 for the server's
-- ARGV[3] count          integer  how many to move, from the first on, without ids
-- ARGV[4] client         text     the caller
-- ARGV[5] targetName     text     of the other queue, in JSON
-- ARGV[6] priority       integer  of the messages, here and there
-- ARGV[7] isRedriven     flag     whether the messages are the dead letters of the other queue
-- ARGV[8..] ids          bytes*
--
-- returns {messages moved, messages skipped because the other queue has their ids, ids without a message that were removed from the
--   schedule: the ones after them are not examined, ids not examined because those before them are large, without `ids` 1 for any
--   number}; {-6, 0, 0, 0} when the groups of the other queue have left too many changes unread
local messages, deliveries, failures, due = KEYS.messages, KEYS.deliveries, KEYS.failures, KEYS.due
local targetMessages, targetDue = KEYS.targetMessages, KEYS.targetDue
local targetSchedules = {
  KEYS.targetDue0, KEYS.targetDue1, KEYS.targetDue2, KEYS.targetDue3, KEYS.targetDue4, KEYS.targetDue5, KEYS.targetDue6, KEYS.targetDue7,
  KEYS.targetDue8, KEYS.targetDue9, KEYS.targetDue10,
}

-- include shared/milliseconds.lua

-- include shared/aside.lua

-- include shared/locate.lua

-- include shared/placed.lua

-- include shared/change-log.lua

-- include shared/settings.lua

-- include shared/names.lua

-- include shared/ends.lua

-- include shared/whole-messages.lua

-- include shared/next-step.lua

-- include shared/record.lua

-- include shared/limits.lua

-- include shared/rate-limit.lua

-- include shared/groups.lua

-- include shared/group-places.lua

-- include shared/left-behind.lua

-- include shared/has-batches.lua

local now = milliseconds(ARGV.nowMs)
local LOOKS = 1000 -- the most ids to examine, so that the script ends soon
local moved, passed, gone, rest, arrived = 0, 0, 0, 0, {}
local settings = stored(KEYS.config, 'changes', 'keepCompleted', 'grouped', 'batched')
local isBatched = hasBatches(settings, KEYS.batches)
local targetSettings = stored(KEYS.targetConfig, 'grouped')
local groups = openGroups({schedule = KEYS.due10, order = KEYS.groupOrder, turns = KEYS.groupTurns, wakes = KEYS.groupWakes, states = KEYS.groups, inFlight = KEYS.inFlight}, KEYS.config, now)
local targetGroups = openGroups({schedule = KEYS.targetDue10, order = KEYS.targetGroupOrder, turns = KEYS.targetGroupTurns, wakes = KEYS.targetGroupWakes, states = KEYS.targetGroups, inFlight = KEYS.targetInFlight}, KEYS.targetConfig, now)
local log = openLog(settings.changes)
-- before any change: later an error would leave a message in both queues
if settings.grouped then
  for _, key in ipairs({groups.order, targetGroups.order, targetGroups.schedule}) do redis.call('ZCARD', key) end
end
local ended = (settings.keepCompleted or isBatched) and {}
local targetLog = logOf(KEYS.targetConfig)
if isBehind(targetLog, KEYS.targetChanges) then return {-6, 0, 0, 0} end
local kind, at = ARGV.isRedriven == '1' and 'b' or 'a', string.format('%.0f', now)
local targetHead, groupedHead = changeHead(kind, nil, at, ARGV.priority), changeHead(kind, nil, at, 0)

local mostBytes = targetLog and targetLog.records and MOST_RECORDED_BYTES or MOST_BYTES

-- Moves a message. Returns true, without a change, if the message is too much for this script.
local function moveOne(id)
  local isGrouped = settings.grouped and redis.call('ZSCORE', groups.schedule, id)
  if not isGrouped and not redis.call('ZSCORE', due, id) then return end
  if redis.call('HEXISTS', messages, id) == 0 then -- the schedule has an id without a message
    gone = gone + redis.call('ZREM', due, id) + redis.call('ZREM', groups.schedule, id)
    noteEnded(ended, id)
    return
  end
  if redis.call('HEXISTS', targetMessages, id) == 1 and isPlaced(targetSchedules, KEYS.targetInFlight, id) then
    passed = passed + 1
    return
  end
  if isTooMuch(messages, id, mostBytes) then return true end
  local record = redis.call('HGET', messages, id)
  -- the record after steps that can fail: an id with a record in the other queue is skipped from then on
  if moved == 0 then redis.call('PUBLISH', ARGV.targetChannel, string.format('%.0f', now)) end
  local _, _, _, _, group = readMeta(record)
  if group then
    if targetSettings.grouped ~= '1' then redis.call('HSET', KEYS.targetConfig, 'grouped', '1') end
    targetSettings.grouped = '1'
    addToGroup(targetGroups, group, now, id)
    refreshGroup(targetGroups, group)
  else
    redis.call('ZADD', targetDue, string.format('%.0f', now), id)
  end
  redis.call('HSET', targetMessages, id, record)
  if isGrouped and group then
    takeFromGroup(groups, group, id)
    refreshGroup(groups, group)
  else
    redis.call('ZREM', due, id)
  end
  redis.call('HDEL', messages, id)
  redis.call('HDEL', deliveries, id)
  redis.pcall('HDEL', failures, id)
  moved, arrived[#arrived + 1] = moved + 1, id
  noteEnded(ended, id)
  if log then noteChange(log, 'm,,,', id, ARGV.targetName) end
  if targetLog then noteChange(targetLog, group and groupedHead or targetHead, id, targetLog.records and record) end
end

if #ARGV > 7 then
  for at = 8, #ARGV do
    if moveOne(ARGV[at]) then
      rest = #ARGV - at + 1
      break
    end
  end
else
  local count = tonumber(ARGV.count)
  -- Moves the first messages of a schedule; those that stay must not hold up the next ones. In steps, because ids of other programs can be
  -- of any size.
  local function moveFirst(schedule)
    local looked, stays, bytes, step = 0, 0, 0, 4
    while looked < LOOKS do
      step = math.min(step, LOOKS - looked)
      local ids = redis.call('ZRANGE', schedule, stays, stays + step - 1)
      for _, id in ipairs(ids) do
        if moved >= count or rest > 0 then return end
        local before = moved + gone
        if moveOne(id) then rest = 1 end
        if moved + gone == before then stays = stays + 1 end
        looked, bytes = looked + 1, bytes + #id
      end
      if #ids < step then return end
      if bytes > MOST_RECORDED_BYTES and moved + gone > 0 then rest = 1 end
      if rest > 0 then return end
      step = nextStep(step, looked, bytes, MOST_RECORDED_BYTES)
    end
  end
  moveFirst(due)
  if settings.grouped and ARGV.priority == '0' and moved < count and rest == 0 then moveFirst(groups.schedule) end -- those with a group have that priority too
end
if moved > 0 then
  forgetLeftBehind(KEYS.targetDeliveries, targetGroups.inFlight, arrived)
  redis.pcall('HDEL', KEYS.targetFailures, unpack(arrived))
end
if isBatched then
-- include shared/beforehand.lua

-- include shared/batches.lua

  leaveBatches({key = KEYS.batches, at = KEYS.batchesAt, messages = messages, deliveries = deliveries, inFlight = KEYS.inFlight, now = now, log = log}, ended, 'removed')
end
writeChanges(log, KEYS.changes, KEYS.config, ARGV.client)
writeChanges(targetLog, KEYS.targetChanges, KEYS.targetConfig, ARGV.client)
if settings.keepCompleted then
  forgetCompleted(KEYS.completed, KEYS.completedAt, ended)
  publishEnds(messages, ended)
end
return {moved, passed, gone, rest}
