-- Move messages that no consumer has from one priority of a queue to another queue of the same cluster slot, where they are
-- visible at once and begin anew: with no attempts, no failures and no batch. An id that is there already stays here. Of the queue that they
-- leave they are gone. Where they are large it moves only the first of them.
--
-- KEYS[1] messages          hash  id -> record
-- KEYS[2] deliveries        hash  id -> "<attempts>", in flight "<attempts> <token>"
-- KEYS[3] failures          hash  id -> a line for each failed attempt
-- KEYS[4] due               zset  id -> when it is visible, epoch ms
-- KEYS[5] targetMessages    hash  the same of the other queue
-- KEYS[6] targetDue         zset  the same of the other queue
-- KEYS[7] config            hash    what `setConfig` and pausing say
-- KEYS[8] changes           stream  what the scripts have changed
-- KEYS[9] targetConfig      hash    the same of the other queue
-- KEYS[10] targetChanges    stream  the same of the other queue
-- KEYS[11] completed    hash  id -> what is kept of a completed message
-- KEYS[12] completedAt  zset  id -> when it was completed, epoch ms
-- KEYS[13] due10  zset  id -> when it is visible, epoch ms; of those with a group
-- KEYS[14] groupOrder  zset  group, when it is visible, and id of those with a group, in the order of their bytes
-- KEYS[15] groupTurns  zset  group -> its turn
-- KEYS[16] groupWakes  zset  group -> from when on it can have a turn, epoch ms
-- KEYS[17] groups  hash  group -> its claims, and when they were
-- KEYS[18] targetDue10       zset  the same of the other queue
-- KEYS[19] targetGroupOrder  zset  the same of the other queue
-- KEYS[20] targetGroupTurns  zset  the same of the other queue
-- KEYS[21] targetGroupWakes  zset  the same of the other queue
-- KEYS[22] targetGroups      hash  the same of the other queue
-- KEYS[23] inFlight          zset  priority and id -> when its visibility ends, epoch ms
-- KEYS[24] targetInFlight    zset  the same of the other queue
-- KEYS[25] batches    hash  the batch of a message, the counts of a batch, its last message: see shared/batches.lua
-- KEYS[26] batchesAt  zset  batch that has finished -> when, epoch ms
--
-- ARGV[1] targetChannel  text     announces when something becomes visible there
-- ARGV[2] nowMs          integer  the caller's clock, or -1 for the server's
-- ARGV[3] count          integer  the first so many, when no ids are given
-- ARGV[4] client         text     the caller
-- ARGV[5] targetName     text     of the other queue, in JSON
-- ARGV[6] priority       integer  of the messages, here and there
-- ARGV[7] isRedriven     flag     whether the messages are the dead letters of the other queue
-- ARGV[8..] ids          bytes*
--
-- returns {how many were moved, how many were passed over because their ids are there, how many stood in the schedule without being
--   messages and are gone from it: what is behind them has not been looked at, how many of the ids were not looked at because those before them
--   are large, and without ids 1 for any number}; {-6, 0, 0, 0} when the groups of the other queue have left too many changes unread
local messages, deliveries, failures, due = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local targetMessages, targetDue = KEYS[5], KEYS[6]

-- include shared/milliseconds.lua

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

local now = milliseconds(ARGV[2])
local LOOKS = 1000 -- so many ids at most, so that the script is over soon
local moved, passed, gone, rest = 0, 0, 0, 0
local settings = stored(KEYS[7], 'changes', 'keepCompleted', 'grouped', 'batched')
local targetSettings = stored(KEYS[9], 'grouped')
local groups = openGroups({schedule = KEYS[13], order = KEYS[14], turns = KEYS[15], wakes = KEYS[16], states = KEYS[17], inFlight = KEYS[23]}, KEYS[7], now)
local targetGroups = openGroups({schedule = KEYS[18], order = KEYS[19], turns = KEYS[20], wakes = KEYS[21], states = KEYS[22], inFlight = KEYS[24]}, KEYS[9], now)
local log = openLog(settings.changes)
local ended = (settings.keepCompleted or settings.batched) and {}
local targetLog = logOf(KEYS[9])
if isBehind(targetLog, KEYS[10]) then return {-6, 0, 0, 0} end
local kind, at = ARGV[7] == '1' and 'b' or 'a', string.format('%.0f', now)
local targetHead, groupedHead = changeHead(kind, nil, at, ARGV[6]), changeHead(kind, nil, at, 0)

local mostBytes = targetLog and targetLog.records and MOST_RECORDED_BYTES or MOST_BYTES

-- Returns true, and does nothing, where the message is too much for this script.
local function moveOne(id)
  local isGrouped = settings.grouped and redis.call('ZSCORE', groups.schedule, id)
  if not isGrouped and not redis.call('ZSCORE', due, id) then return end
  if redis.call('HEXISTS', messages, id) == 0 then -- it is in the schedule only, and no message
    gone = gone + redis.call('ZREM', due, id) + redis.call('ZREM', groups.schedule, id)
    if ended then ended[#ended + 1] = id end
    return
  end
  if redis.call('HEXISTS', targetMessages, id) == 1 then
    passed = passed + 1
    return
  end
  if isTooMuch(messages, id, mostBytes) then return true end
  local record = redis.call('HGET', messages, id)
  -- the record after what can fail: an id that has one there is passed over from then on
  if moved == 0 then redis.call('PUBLISH', ARGV[1], string.format('%.0f', now)) end
  local _, _, _, _, group = readMeta(record)
  if group then
    if targetSettings.grouped ~= '1' then redis.call('HSET', KEYS[9], 'grouped', '1') end
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
  moved = moved + 1
  if ended then ended[#ended + 1] = id end
  if log then noteChange(log, 'm,,,', id, ARGV[5]) end
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
  local count = tonumber(ARGV[3])
  -- Those that stay here must not keep the ones behind them. In steps: ids of other programs can be of any size.
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
      step = nextStep(step, looked, bytes, MOST_RECORDED_BYTES)
    end
  end
  moveFirst(due)
  if settings.grouped and ARGV[6] == '0' and moved < count and rest == 0 then moveFirst(groups.schedule) end -- those with a group have that priority too
end
if settings.batched then
-- include shared/beforehand.lua

-- include shared/batches.lua

  leaveBatches({key = KEYS[25], at = KEYS[26], messages = messages, inFlight = KEYS[23], now = now, log = log}, ended, 'removed')
end
writeChanges(log, KEYS[8], KEYS[7], ARGV[4])
writeChanges(targetLog, KEYS[10], KEYS[9], ARGV[4])
if settings.keepCompleted then
  forgetCompleted(KEYS[11], KEYS[12], ended)
  publishEnds(messages, ended)
end
return {moved, passed, gone, rest}
