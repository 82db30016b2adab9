-- Remove handled messages whose visibility has not ended, and which no other client has claimed since. Their completed records
-- stay while the queue keeps them. If the queue was at its limit, the script notifies waiting clients. If messages with a group
-- are large, it acknowledges only the first of them.
--
-- KEYS[1] messages    hash  id -> record
-- KEYS[2] deliveries  hash  id -> "<attempts>", in flight "<attempts> <token>"
-- KEYS[3] failures    hash  id -> a line for each failed attempt
-- KEYS[4] inFlight    zset  priority and id -> when its visibility ends, epoch ms
-- KEYS[5] config      hash  the queue's settings
-- KEYS[6] changes     stream  the queue's changes
-- KEYS[7] completed    hash  id -> "<when, epoch ms>,<attempts>,<1 with a result>\n<result>"
-- KEYS[8] completedAt  zset  id -> when, epoch ms
-- KEYS[9] due10  zset  id -> when it is visible, epoch ms; messages with a group
-- KEYS[10] groupOrder  zset  group, due time and id of the messages with a group, in the order of their bytes
-- KEYS[11] groupTurns  zset  group -> its turn
-- KEYS[12] groupWakes  zset  group -> when it can have a turn, epoch ms
-- KEYS[13] groups  hash  group -> its claims, and when they were
-- KEYS[14] batches    hash  the batch of a message, the counts of a batch, its last message: see shared/batches.lua
-- KEYS[15] batchesAt  zset  finished batch -> when, epoch ms
--
-- ARGV[1] nowMs       integer  the caller's clock, or -1 for the server's
-- ARGV[2] client      text     the caller
-- ARGV[3] withResults  flag    whether there is a result for each message
-- ARGV[4..] handled   bytes*   for each message two: its priority and id, "<attempts> <token>"; and its result, if there are any: "1" and
--   bytes, or nothing
--
-- returns for each message 1, or 0 when it was no longer the caller's; for at least one message
local messages, deliveries, failures, inFlight = KEYS.messages, KEYS.deliveries, KEYS.failures, KEYS.inFlight

-- include shared/milliseconds.lua

-- include shared/attempts.lua

-- include shared/change-log.lua

-- include shared/settings.lua

-- include shared/names.lua

-- include shared/surplus.lua

-- include shared/ends.lua

-- include shared/record.lua

-- include shared/limits.lua

-- include shared/rate-limit.lua

-- include shared/groups.lua

-- include shared/keep-completed.lua

-- include shared/whole-messages.lua

-- include shared/has-batches.lua

local now = milliseconds(ARGV.nowMs)
local STEP = ARGV.withResults == '1' and 3 or 2
local count = math.floor((#ARGV - 3) / STEP)
if count == 0 then return {} end
-- local names, and no `#` in the loops: acknowledgements are half of Redis's work for a worker
local handled, sub, byte = ARGV, string.sub, string.byte
local members, named = {}, {}
for n = 1, count do
  local member = handled[4 + STEP * (n - 1)]
  members[n], named[n] = member, sub(member, 2)
end
local known = deliveriesOf(deliveries, named)
local ends = redis.call('ZMSCORE', inFlight, unpack(members))

local reply, gone, ids, seen, places, held = {}, {}, {}, {}, {}, 0
local names, ended, bytes = {}, {}, 0
for n = 1, count do
  local member, place = members[n], 4 + STEP * (n - 1)
  if known[n] and known[n] == handled[place + 1] and ends[n] and not seen[member] and tonumber(ends[n]) > now then
    if byte(member) == GROUP_BYTE then
      local group, size = groupOf(messages, named[n])
      bytes = bytes + size
      if bytes > MOST_BYTES and held > 0 then break end
      if group and not ended[group] then names[#names + 1] = group end
      if group then ended[group] = (ended[group] or 0) - 1 end
    end
    held = held + 1
    seen[member] = true
    gone[held], ids[held], places[held] = member, named[n], place
    reply[n] = 1
  else
    reply[n] = 0
  end
end
if held > 0 then
  local settings = stored(KEYS.config, 'changes', 'keepCompleted', 'keepCompletedFor', 'concurrency', 'batched')
  -- most have not failed, and have no batch
  local hasMore = redis.call('EXISTS', failures, KEYS.batches) > 0
  local isBatched = hasMore and hasBatches(settings, KEYS.batches)
  local wasAtLimit = isAtLimit(settings, inFlight, now)
  redis.call('ZREM', inFlight, unpack(gone))
  redis.call('HDEL', messages, unpack(ids))
  redis.call('HDEL', deliveries, unpack(ids))
  if hasMore then redis.pcall('HDEL', failures, unpack(ids)) end
  local most = setting(settings.keepCompleted, 1, 1000000)
  if most then
    local records, age = {}, setting(settings.keepCompletedFor, 1)
    for n, place in ipairs(places) do
      local result = STEP == 3 and ARGV[place + 2] or ''
      local attempts = attemptsOf(ARGV[place + 1])
      records[n] = string.format('%.0f,%d,', now, attempts) .. string.sub(result, 1, 1) .. '\n' .. string.sub(result, 2)
    end
    keepCompleted(KEYS.completed, KEYS.completedAt, ids, records, now, most, age and now - age)
    publishEnds(messages, ids)
  end
  local log = openLog(settings.changes)
  if log then
    for _, id in ipairs(ids) do noteChange(log, 'k,,,', id) end
  end
  if isBatched then
-- include shared/beforehand.lua

-- include shared/batches.lua

    leaveBatches({key = KEYS.batches, at = KEYS.batchesAt, messages = messages, deliveries = deliveries, inFlight = inFlight, now = now, log = log}, ids, 'completed')
  end
  writeChanges(log, KEYS.changes, KEYS.config, ARGV.client)
  local groups = openGroups({inFlight = inFlight, schedule = KEYS.due10, order = KEYS.groupOrder, turns = KEYS.groupTurns, wakes = KEYS.groupWakes, states = KEYS.groups}, KEYS.config, now)
  local _, areCalled = pcall(refreshGroups, groups, names, ended) -- a key of another type prevents no acknowledgement
  wasAtLimit = wasAtLimit or areCalled == true
  if wasAtLimit then publishSlot(messages, now) end
end
return reply
