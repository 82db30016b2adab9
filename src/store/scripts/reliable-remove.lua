-- Remove messages by their ids: only those that no consumer has, or any. If they are large, it removes only the first of them.
--
-- KEYS[1] messages    hash  id -> record
-- KEYS[2] deliveries  hash  id -> "<attempts>", in flight "<attempts> <token>"
-- KEYS[3] failures    hash  id -> a line for each failed attempt
-- KEYS[4] inFlight    zset  priority and id -> when its visibility ends, epoch ms
-- KEYS[5] due0  zset  id -> when it is visible, epoch ms; priority 0
-- KEYS[6] due1  zset  id -> when it is visible, epoch ms; priority 1
-- KEYS[7] due2  zset  id -> when it is visible, epoch ms; priority 2
-- KEYS[8] due3  zset  id -> when it is visible, epoch ms; priority 3
-- KEYS[9] due4  zset  id -> when it is visible, epoch ms; priority 4
-- KEYS[10] due5  zset  id -> when it is visible, epoch ms; priority 5
-- KEYS[11] due6  zset  id -> when it is visible, epoch ms; priority 6
-- KEYS[12] due7  zset  id -> when it is visible, epoch ms; priority 7
-- KEYS[13] due8  zset  id -> when it is visible, epoch ms; priority 8
-- KEYS[14] due9  zset  id -> when it is visible, epoch ms; priority 9
-- KEYS[15] config  hash  the queue's settings
-- KEYS[16] changes  stream  the queue's changes
-- KEYS[17] completed    hash  id -> record of a completed message
-- KEYS[18] completedAt  zset  id -> when it was completed, epoch ms
-- KEYS[19] due10  zset  id -> when it is visible, epoch ms; messages with a group
-- KEYS[20] groupOrder  zset  group, due time and id of the messages with a group, in the order of their bytes
-- KEYS[21] groupTurns  zset  group -> its turn
-- KEYS[22] groupWakes  zset  group -> when it can have a turn, epoch ms
-- KEYS[23] groups  hash  group -> its claims, and when they were
-- KEYS[24] batches    hash  the batch of a message, the counts of a batch, its last message: see shared/batches.lua
-- KEYS[25] batchesAt  zset  finished batch -> when, epoch ms
--
-- ARGV[1] nowMs     integer  the caller's clock, or -1 for the server's
-- ARGV[2] alsoHeld  flag     also messages that consumers have, whose acknowledgements will be too late
-- ARGV[3] client    text     the caller
-- ARGV[4..] ids     bytes*
--
-- returns for each id 1 when it was removed, else 0; for at least one id
local messages, deliveries, failures, inFlight = KEYS.messages, KEYS.deliveries, KEYS.failures, KEYS.inFlight
local due = {KEYS.due0, KEYS.due1, KEYS.due2, KEYS.due3, KEYS.due4, KEYS.due5, KEYS.due6, KEYS.due7, KEYS.due8, KEYS.due9, KEYS.due10}
local alsoHeld = ARGV.alsoHeld == '1'

-- include shared/milliseconds.lua

-- include shared/aside.lua

-- include shared/locate.lua

-- include shared/change-log.lua

-- include shared/settings.lua

-- include shared/names.lua

-- include shared/ends.lua

-- include shared/whole-messages.lua

-- include shared/record.lua

-- include shared/limits.lua

-- include shared/rate-limit.lua

-- include shared/groups.lua

-- include shared/group-places.lua

-- include shared/has-batches.lua

local now = milliseconds(ARGV.nowMs)
local settings = stored(KEYS.config, 'changes', 'keepCompleted', 'concurrency', 'batched')
local isBatched = hasBatches(settings, KEYS.batches)
local groups = openGroups({inFlight = inFlight, schedule = KEYS.due10, order = KEYS.groupOrder, turns = KEYS.groupTurns, wakes = KEYS.groupWakes, states = KEYS.groups}, KEYS.config, now)
local wasAtLimit, freed = isAtLimit(settings, inFlight, now), false
local log = openLog(settings.changes)
local ended = (settings.keepCompleted or isBatched) and {}
local names, claimsEnded = {}, {}
local reply = {}
for at = 4, #ARGV do
  local id = ARGV[at]
  local priority, visible, isTaken = locate(due, inFlight, id)
  local isHeld = isTaken and visible > now
  -- a record that is in no schedule and not in flight is what is left of a message whose place was deleted
  local isLost = not priority and redis.call('HEXISTS', messages, id) == 1
  local mayGo = isLost or (priority and (alsoHeld or not isHeld))
  if mayGo then
    if isTooMuch(messages, id, MOST_BYTES) then break end
    local group = priority == GROUPED and groupOf(messages, id)
    if isTaken then redis.call('ZREM', inFlight, memberOf(priority, id))
    elseif group then takeFromGroup(groups, group, id)
    elseif priority then redis.call('ZREM', due[priority + 1], id) end
    if group then
      if not claimsEnded[group] then names[#names + 1] = group end
      claimsEnded[group] = (claimsEnded[group] or 0) - (isTaken and 1 or 0)
    end
    freed = freed or isHeld
    redis.call('HDEL', messages, id)
    redis.call('HDEL', deliveries, id)
    redis.pcall('HDEL', failures, id)
    if log then noteChange(log, 'x,,,', id) end
    if ended then ended[#ended + 1] = id end
  end
  reply[#reply + 1] = mayGo and 1 or 0
end
local _, areCalled = pcall(refreshGroups, groups, names, claimsEnded, true) -- a key of another type prevents no removal
if areCalled == true then wasAtLimit, freed = true, true end
if isBatched then
-- include shared/beforehand.lua

-- include shared/batches.lua

  leaveBatches({key = KEYS.batches, at = KEYS.batchesAt, messages = messages, deliveries = deliveries, inFlight = inFlight, now = now, log = log}, ended, 'removed')
end
writeChanges(log, KEYS.changes, KEYS.config, ARGV.client)
if settings.keepCompleted then
  forgetCompleted(KEYS.completed, KEYS.completedAt, ended)
  publishEnds(messages, ended)
end
if wasAtLimit and freed then publishSlot(messages, now) end
return reply
