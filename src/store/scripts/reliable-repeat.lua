-- Change a repeat, if no other client has changed it since the caller read it, and add the messages of the change: of
-- all callers that prepare the same tick, one succeeds. A change that was computed with a wrong time is refused: its tick could be
-- centuries away. The value of a repeat contains the last tick, so that it differs after each tick; to the scripts it is only a text. An
-- existing message stays unchanged; a record that is in no schedule and not in flight counts as absent.
--
-- KEYS[1] messages    hash  id -> record
-- KEYS[2] deliveries  hash  id -> "<attempts>", in flight "<attempts> <token>"
-- KEYS[3] failures    hash  id -> a line for each failed attempt
-- KEYS[4] repeats     hash  name -> the last tick and the definition
-- KEYS[5] ticks       zset  name -> when its next message has to be prepared, epoch ms
-- KEYS[6] inFlight    zset  priority and id -> when its visibility ends, epoch ms
-- KEYS[7] due0  zset  id -> when it is visible, epoch ms; priority 0
-- KEYS[8] due1  zset  id -> when it is visible, epoch ms; priority 1
-- KEYS[9] due2  zset  id -> when it is visible, epoch ms; priority 2
-- KEYS[10] due3  zset  id -> when it is visible, epoch ms; priority 3
-- KEYS[11] due4  zset  id -> when it is visible, epoch ms; priority 4
-- KEYS[12] due5  zset  id -> when it is visible, epoch ms; priority 5
-- KEYS[13] due6  zset  id -> when it is visible, epoch ms; priority 6
-- KEYS[14] due7  zset  id -> when it is visible, epoch ms; priority 7
-- KEYS[15] due8  zset  id -> when it is visible, epoch ms; priority 8
-- KEYS[16] due9  zset  id -> when it is visible, epoch ms; priority 9
-- KEYS[17] config  hash  the queue's settings
-- KEYS[18] changes  stream  the queue's changes
-- KEYS[19] completed    hash  id -> record of a completed message
-- KEYS[20] completedAt  zset  id -> when it was completed, epoch ms
-- KEYS[21] groupWakes  zset  group -> when it can have a turn, epoch ms
-- KEYS[22] batches    hash  the batch of a message, the counts of a batch, its last message: see shared/batches.lua
-- KEYS[23] batchesAt  zset  finished batch -> when, epoch ms
-- KEYS[24] due10  zset  id -> when it is visible, epoch ms; messages with a group
-- KEYS[25] groupOrder  zset  group, due time and id of the messages with a group, in the order of their bytes
-- KEYS[26] groupTurns  zset  group -> its turn
-- KEYS[27] groups  hash  group -> its claims, and when they were
--
-- ARGV[1] channel     text     announces when messages become visible
-- ARGV[2] nowMs       integer  the caller's clock, or -1 for the server's
-- ARGV[3] computedAt  number   the time with which the caller computed the change, epoch ms
-- ARGV[4] name        bytes
-- ARGV[5] expected    bytes    the value as the caller knows it, or "" for none
-- ARGV[6] value       bytes    the new one, or "" for none
-- ARGV[7] at          text     when the next message has to be prepared, epoch ms, or "" for never
-- ARGV[8] priority    integer  the priority of the messages; 10 if their records have a group, which is the same for all
-- ARGV[9] withdrawn   bytes    the id of a message that is removed unless it is visible or a consumer has it, or ""
-- ARGV[10] client     text     the caller
-- ARGV[11..] items    bytes*   for each message three: its id, when it is visible, epoch ms, its record
--
-- returns 1, or 0 when the value was another one, or the caller's time is more than a minute from the script's; or, when the queue has no
--   room for all messages, -1 less the number of messages that fit, and nothing was changed; -2147483648 when the groups have left too many
--   changes unread, and nothing was changed
local messages, deliveries, failures, repeats, ticks, inFlight = KEYS.messages, KEYS.deliveries, KEYS.failures, KEYS.repeats, KEYS.ticks, KEYS.inFlight
local due = {KEYS.due0, KEYS.due1, KEYS.due2, KEYS.due3, KEYS.due4, KEYS.due5, KEYS.due6, KEYS.due7, KEYS.due8, KEYS.due9}
local channel, name, value, at, withdrawn = ARGV.channel, ARGV.name, ARGV.value, ARGV.at, ARGV.withdrawn
local priority = tonumber(ARGV.priority)
local MOST_OFF_MS = 60000

-- include shared/milliseconds.lua

-- include shared/oldest-due.lua

-- include shared/announce.lua

-- include shared/aside.lua

-- include shared/locate.lua

-- include shared/placed.lua

-- include shared/settings.lua

-- include shared/names.lua

-- include shared/change-log.lua

-- include shared/ends.lua

-- include shared/record.lua

-- include shared/limits.lua

-- include shared/rate-limit.lua

-- include shared/groups.lua

-- include shared/group-places.lua

-- include shared/left-behind.lua

-- include shared/size.lua

-- include shared/has-batches.lua

local now = milliseconds(ARGV.nowMs)
if math.abs(tonumber(ARGV.computedAt) - now) > MOST_OFF_MS then return 0 end
if (redis.call('HGET', repeats, name) or '') ~= ARGV.expected then return 0 end

local size = (#ARGV - 10) / 3
local settings = stored(KEYS.config, 'maxSize', 'changes', 'keepCompleted', 'batched', 'grouped')
local isBatched = hasBatches(settings, KEYS.batches)
local groups = openGroups({inFlight = inFlight, schedule = KEYS.due10, order = KEYS.groupOrder, turns = KEYS.groupTurns, wakes = KEYS.groupWakes, states = KEYS.groups}, KEYS.config, now)
local log = openLog(settings.changes)
if size > 0 and isBehind(log, KEYS.changes) then return -2147483648 end
local all = {unpack(due)}
all[#all + 1] = groups.schedule
local maxSize = size > 0 and setting(settings.maxSize, 1)
if maxSize then
  local taken, arePlaces = sizeOf(messages, {inFlight, unpack(all)}, size, maxSize)
  -- the withdrawn message makes room; an existing one is not added again
  if withdrawn ~= '' and redis.call('HEXISTS', messages, withdrawn) == 1 and (not arePlaces or isPlaced(all, inFlight, withdrawn)) then taken = taken - 1 end
  local room = math.max(0, maxSize - taken)
  if size > room then return -1 - room end
end

-- Before anything is changed, so that an error (no right to publish, another type) leaves everything as it was.
local first = tonumber(at)
for item = 11, #ARGV, 3 do
  local visible = tonumber(ARGV[item + 1])
  if not first or visible < first then first = visible end
end
redis.call('ZCARD', ticks)
if first then announce({inFlight, KEYS.groupWakes, unpack(due)}, ticks, channel, first, now) end

local ended = (settings.keepCompleted or isBatched) and {}
local touched, isTouched = {}, {} -- groups whose places are updated at the end

local function touch(group)
  if not isTouched[group] then touched[#touched + 1] = group end
  isTouched[group] = true
end

local function isToCome(schedule)
  return aside.whenOf(tonumber(redis.call('ZSCORE', schedule, withdrawn) or 0)) > now
end

-- Where the withdrawn message waits. It is removed after the new ones are added, so that after an error the repeat still has a next
-- message.
local former, formerPlace, formerGroup = {}, nil, nil
if withdrawn ~= '' then
  for _, each in ipairs(due) do
    if isToCome(each) then former[#former + 1] = each end
  end
  if settings.grouped and isToCome(groups.schedule) then
    former[#former + 1] = groups.schedule
    formerGroup = groupOf(messages, withdrawn)
    formerPlace = formerGroup and placeNow(groups, formerGroup, withdrawn)
  end
end
if #former > 0 then
  if log then noteChange(log, 'x,,,', withdrawn) end
  if ended then ended[#ended + 1] = withdrawn end
end

-- Adds a message; for one with a group, the record has the group. Returns its schedule, and its member in `order`.
local function enter(id, visible, record)
  local _, _, _, _, group = readMeta(record)
  if priority ~= GROUPED or not group then
    local schedule = due[priority == GROUPED and 1 or priority + 1]
    redis.call('ZADD', schedule, visible, id)
    return schedule
  end
  if settings.grouped ~= '1' then redis.call('HSET', KEYS.config, 'grouped', '1') end
  settings.grouped = '1'
  local _, place = addToGroup(groups, group, tonumber(visible), id)
  touch(group)
  return groups.schedule, place
end

local againIn, againPlace -- where the withdrawn message is again, if a new one has its id
for item = 11, #ARGV, 3 do
  local id = ARGV[item]
  local isThere = redis.call('HEXISTS', messages, id) == 1
  -- another program wrote such a record, or deleted its place: no poll would find it
  local isLost = isThere and not isPlaced(all, inFlight, id)
  local isAgain = id == withdrawn and #former > 0 and not againIn
  if isAgain or isLost or not isThere then
    local schedule, place = enter(id, ARGV[item + 1], ARGV[item + 2])
    if isAgain then againIn, againPlace = schedule, place end
    redis.call('HSET', messages, id, ARGV[item + 2])
    forgetLeftBehind(deliveries, inFlight, {id})
    if isAgain or isLost then redis.pcall('HDEL', failures, id) end
    if isLost then
      if ended then ended[#ended + 1] = id end
    end
    if log then noteChange(log, changeHead('a', nil, ARGV[item + 1], priority == GROUPED and 0 or priority), id, log.records and ARGV[item + 2]) end
  end
end
if #former > 0 and not againIn then
  redis.call('HDEL', messages, withdrawn)
  redis.call('HDEL', deliveries, withdrawn)
  redis.pcall('HDEL', failures, withdrawn)
end
for _, each in ipairs(former) do
  if each ~= againIn then redis.call('ZREM', each, withdrawn) end
end
if formerPlace then
  if formerPlace ~= againPlace then redis.call('ZREM', groups.order, formerPlace) end
  touch(formerGroup)
end
refreshGroups(groups, touched, {}, true)
if at == '' then redis.call('ZREM', ticks, name) else redis.call('ZADD', ticks, at, name) end
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
-- the last step: after an error above the same change can be repeated
if value == '' then redis.call('HDEL', repeats, name) else redis.call('HSET', repeats, name, value) end
return 1
