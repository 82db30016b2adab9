-- Add messages that become visible after their delays, and publish the time of one that becomes visible earlier than
-- announced. A refused message does not prevent the others. An expired message counts as absent, and so does one that is in no schedule
-- and not in flight. The caller limits the script's time by the number of messages.
--
-- KEYS[1] messages    hash  id -> record
-- KEYS[2] deliveries  hash  id -> "<attempts>", in flight "<attempts> <token>"
-- KEYS[3] failures    hash  id -> a line for each failed attempt
-- KEYS[4] config      hash  the queue's settings
-- KEYS[5] once        zset  deduplication mark -> until when, epoch ms
-- KEYS[6] inFlight    zset  priority and id -> when its visibility ends, epoch ms
-- KEYS[7] ticks  zset  name of a repeat -> when its next message has to be prepared, epoch ms
-- KEYS[8] due0  zset  id -> when it is visible, epoch ms; priority 0
-- KEYS[9] due1  zset  id -> when it is visible, epoch ms; priority 1
-- KEYS[10] due2  zset  id -> when it is visible, epoch ms; priority 2
-- KEYS[11] due3  zset  id -> when it is visible, epoch ms; priority 3
-- KEYS[12] due4  zset  id -> when it is visible, epoch ms; priority 4
-- KEYS[13] due5  zset  id -> when it is visible, epoch ms; priority 5
-- KEYS[14] due6  zset  id -> when it is visible, epoch ms; priority 6
-- KEYS[15] due7  zset  id -> when it is visible, epoch ms; priority 7
-- KEYS[16] due8  zset  id -> when it is visible, epoch ms; priority 8
-- KEYS[17] due9  zset  id -> when it is visible, epoch ms; priority 9
-- KEYS[18] changes  stream  the queue's changes
-- KEYS[19] due10  zset  id -> when it is visible, epoch ms; messages with a group
-- KEYS[20] groupOrder  zset  group, due time and id of the messages with a group, in the order of their bytes
-- KEYS[21] groupTurns  zset  group -> its turn
-- KEYS[22] groupWakes  zset  group -> when it can have a turn, epoch ms
-- KEYS[23] groups  hash  group -> its claims, and when they were
-- KEYS[24] batches    hash  the batch of a message, the counts of a batch, its last message: see shared/batches.lua
-- KEYS[25] batchesAt  zset  finished batch -> when, epoch ms
--
-- ARGV[1] channel   text     announces when messages become visible
-- ARGV[2] nowMs     integer  the caller's clock, or -1 for the server's
-- ARGV[3] existing  text     the policy for existing ids: 'keep', 'replace', or 'postpone'
-- ARGV[4] sentAgoMs  integer  how many milliseconds ago the caller sent the first attempt, which may have been carried out: then equal
--   messages under these ids are the caller's; -1 if this is the first one
-- ARGV[5] durable   flag     whether the caller waits for durability: a WAIT covers writes only, and a script that changes nothing would
--   seem durable at once
-- ARGV[6] client    text     the caller
-- ARGV[7] batch     text     the batch of the messages, or "" for none
-- ARGV[8..] items   bytes*   for each message three: its id; "<priority>,<when>,<time to live in ms>,<delivery limit>,<bytes of headers>,<once for
--   how many ms>,<what it is once>", where when is a delay in ms or "@" and epoch ms, with nothing for missing ones; group, headers and
--   payload; with a group "g<bytes of it>" is in the place of the priority
--
-- returns {now as text, the outcome of each message, ...}: 1 added, 2 replaced, 3 postponed, 0 kept as it was, -1 was added within
--   its interval, -2 the queue is full, -3 a time exceeds 2^53-1, -4 adding is paused, -5 its payload is too large,
--   -6 the groups have left too many changes unread, -7 the batch is closed, -8 batches cannot be counted: a key is of another type
local messages, deliveries, failures, config, once, inFlight, ticks = KEYS.messages, KEYS.deliveries, KEYS.failures, KEYS.config, KEYS.once, KEYS.inFlight, KEYS.ticks
local due = {KEYS.due0, KEYS.due1, KEYS.due2, KEYS.due3, KEYS.due4, KEYS.due5, KEYS.due6, KEYS.due7, KEYS.due8, KEYS.due9, KEYS.due10}
local channel, existing, sentAgo, durable = ARGV.channel, ARGV.existing, tonumber(ARGV.sentAgoMs), ARGV.durable == '1'
local resent = sentAgo >= 0
local SENT_SLACK_MS = 10000 -- this attempt can have been on its way for so long since the caller counted `sentAgo`
local changes, client, batchName = KEYS.changes, ARGV.client, ARGV.batch
local MAX = 9007199254740991
local TOGETHER = 10
local LONGEST_MARK, DAY_MS = 31536000000, 86400000 -- 365 days, as in src/store/new-message.ts; a clock that is ahead is taken to be ahead by less than a day

-- include shared/milliseconds.lua

-- include shared/oldest-due.lua

-- include shared/announce.lua

-- include shared/aside.lua

-- include shared/locate.lua

-- include shared/record.lua

-- include shared/settings.lua

-- include shared/names.lua

-- include shared/change-log.lua

-- include shared/limits.lua

-- include shared/rate-limit.lua

-- include shared/groups.lua

-- include shared/group-places.lua

-- include shared/left-behind.lua

-- include shared/size.lua

-- include shared/has-batches.lua

local now = milliseconds(ARGV.nowMs)
local settings = stored(config, 'changes', 'maxSize', 'timeToLive', 'delay', 'maxMessageBytes', 'addPaused', 'concurrency', 'grouped', 'batched')
local groups = openGroups({inFlight = inFlight, schedule = KEYS.due10, order = KEYS.groupOrder, turns = KEYS.groupTurns, wakes = KEYS.groupWakes, states = KEYS.groups}, config, now)
local isPaused, maxSize, maxBytes = settings.addPaused == '1', setting(settings.maxSize, 1), setting(settings.maxMessageBytes, 1)
local delayOfAll, ttlOfAll = setting(settings.delay, 0) or 0, setting(settings.timeToLive, 1)
local log = settings.changes and openLog(settings.changes)
local isRefused = isPaused or isBehind(log, changes)

-- The messages that join the batch, until they are written.
local joining = {}
local function join(id)
  if batchName == '' then return end
  joining[#joining + 1], joining[#joining + 2] = 'm' .. id, batchName
end

-- Why no message can be added to the batch, if so; and functions that most queues do without.
local noBatch, flushBatch, leaveBatch
if batchName ~= '' or hasBatches(settings, KEYS.batches) then
-- include shared/ends.lua

-- include shared/beforehand.lua

-- include shared/batches.lua

  local batches = {key = KEYS.batches, at = KEYS.batchesAt, messages = messages, deliveries = deliveries, inFlight = inFlight, now = now, log = log}

  -- before any change, so that no message of the batch exists without being counted
  if batchName ~= '' then
    local batch = readBatch(batches, batchName)
    if type(redis.pcall('HLEN', batches.key)) == 'table' then noBatch = -8
    elseif batch and batch.state ~= 'o' then noBatch = -7 end
  end

  flushBatch = function()
    if #joining == 0 then return end
    if not settings.batched then
      redis.call('HSET', config, 'batched', '1')
      settings.batched = '1'
    end
    local batch = readBatch(batches, batchName) -- read again: a replaced message may have left it
    if not batch then
      batch = newBatch(now)
      countUnfinished(batches, 1)
    end
    batch.pending = batch.pending + #joining / 2
    redis.call('HSET', batches.key, 'b' .. batchName, countsOf(batch), unpack(joining))
    joining = {}
  end

  leaveBatch = function(id, how)
    leaveBatches(batches, {id}, how)
  end
end

-- A mark that ends later than any client lets it end is another program's, and would hold for ever.
local latestMark, isMarking = now + LONGEST_MARK + DAY_MS, false
local function markedUntil(mark)
  local untilMs = tonumber(redis.call('ZSCORE', once, mark) or 0)
  return untilMs > now and untilMs <= latestMark and untilMs
end

-- Whether the caller's first attempt can have set this mark although its message has no record: then the mark was set since that attempt
-- was sent, and a consumer can have had the message since.
local function canBeOwn(detail, untilMs)
  local onceMs = detail.marked - now
  local markedAt, delayMs = untilMs - onceMs, detail.visible - now
  if markedAt < now - sentAgo - SENT_SLACK_MS then return false end
  return delayMs <= 0 or not detail.isDated and delayMs <= sentAgo
end

-- When a message becomes visible: after a delay, or at a time not before now.
local function visibleAt(text)
  if string.sub(text, 1, 1) == '@' then return math.max(now, tonumber(string.sub(text, 2))) end
  return now + (tonumber(text) or delayOfAll)
end

local function readDetails(text)
  local priority, when, ttl, limit, headers, onceMs, mark =
    string.match(text, '^(g?%d+),([^,]*),(%d*),(%d*),(%d+),(%d*),(.*)$')
  local group = string.match(priority, '^g(%d+)$')
  local visible, lives = visibleAt(when), tonumber(ttl) or ttlOfAll
  -- counted from when the message is visible: a delayed message does not age
  local expires = lives and visible + lives
  local marked = tonumber(onceMs) and now + tonumber(onceMs)
  isMarking = isMarking or marked ~= nil
  return {
    limit = tonumber(limit), group = tonumber(group), priority = group and GROUPED or tonumber(priority), visible = visible, score = string.format('%.0f', visible), expires = expires,
    headers = tonumber(headers), meta = writeMeta(expires, tonumber(limit), tonumber(headers)),
    mark = mark, marked = marked, isDated = string.sub(when, 1, 1) == '@', isTooLate = visible > MAX or (expires or 0) > MAX, isMarkTooLate = (marked or 0) > MAX,
  }
end

-- Before any change: the earliest time is published. Many messages have the same details.
local details, ids, first = {}, {}, nil
for at = 8, #ARGV, 3 do
  local text = ARGV[at + 1]
  local detail = details[text] or readDetails(text)
  details[text], ids[#ids + 1] = detail, ARGV[at]
  if not first or detail.visible < first then first = detail.visible end
end
if first and first <= MAX and not isRefused and not noBatch then announce({inFlight, settings.grouped and KEYS.groupWakes or inFlight, unpack(due, 1, 10)}, ticks, channel, first, now) end

-- Whether no poll can claim a message any more, though none has removed it yet; a consumer that has it may still handle it.
local function isOver(record, visible, isTaken)
  local expires = readMeta(record)
  return expires and expires <= now and not (isTaken and visible > now)
end

local size, arePlaces
if maxSize then size, arePlaces = sizeOf(messages, {inFlight, unpack(due)}, #ids, maxSize) end

local function noteAdded(id, detail, record)
  detail.head = detail.head or changeHead('a', nil, detail.score, detail.priority == GROUPED and 0 or detail.priority)
  noteChange(log, detail.head, id, log.records and record)
end

local touched, isTouched = {}, {} -- groups whose places are updated after all messages are added
local function touch(group)
  if not isTouched[group] then touched[#touched + 1] = group end
  isTouched[group] = true
end

-- New messages are written together.
local seen, scheduled, ordered, written, fresh = {}, {}, {}, {}, {}
local function collect(id, detail, record, group)
  local list = scheduled[detail.priority] or {}
  scheduled[detail.priority] = list
  list[#list + 1], list[#list + 2] = detail.score, id
  written[#written + 1], written[#written + 2] = id, record
  fresh[#fresh + 1] = id
  if group then
    ordered[#ordered + 1], ordered[#ordered + 2] = 0, placeOf(group, detail.visible, id)
    touch(group)
  end
  if log then noteAdded(id, detail, written[#written]) end
  join(id)
end

-- In this order, so that after an error between the writes every record is in a schedule.
local function flush()
  if #written == 0 then return end
  if #ordered > 0 then redis.call('ZADD', groups.order, unpack(ordered)) end
  for priority = 0, GROUPED do
    if scheduled[priority] then redis.call('ZADD', due[priority + 1], unpack(scheduled[priority])) end
  end
  redis.call('HSET', messages, unpack(written))
  forgetLeftBehind(deliveries, inFlight, fresh)
  scheduled, ordered, written, fresh = {}, {}, {}, {}
  if flushBatch then flushBatch() end
end

-- Returns its member in `order`, if it has a group.
local function enterSchedule(priority, at, id, record)
  local _, _, _, _, group = readMeta(record)
  if priority ~= GROUPED or not group then
    redis.call('ZADD', due[priority + 1], string.format('%.0f', at), id)
    return nil
  end
  local _, place = addToGroup(groups, group, at, id)
  touch(group)
  return place
end

-- Moves a message from where it waits or is claimed, if anywhere, to its new schedule. It is added first, so that after an error it is
-- not lost.
local function changeSchedule(from, isTaken, record, id, to, at, newRecord)
  local _, _, _, _, group = readMeta(from == GROUPED and record or '')
  local former = group and not isTaken and placeNow(groups, group, id)
  local place = enterSchedule(to, at, id, newRecord)
  if isTaken then redis.call('ZREM', inFlight, memberOf(from, id))
  elseif former then leavePlace(groups, former, place, id)
  elseif from and from ~= GROUPED and from ~= to then redis.call('ZREM', due[from + 1], id) end
  if group and refreshGroup(groups, group, isTaken and -1) then publishSlot(messages, now) end
end

local isLeft = false
local function leave(outcome)
  isLeft = true
  return outcome
end

local function add(id, record, detail, body)
  if seen[id] then
    flush()
    record = redis.call('HGET', messages, id)
  end
  seen[id] = true
  local isKnown, priorityNow, visibleNow, taken = true, nil, nil, nil
  if record then isKnown, priorityNow, visibleNow, taken = pcall(locate, due, inFlight, id) end
  local isLost = record and isKnown and not priorityNow -- a key of another type may have it
  local isThere = record and not isLost and not isOver(record, visibleNow, taken)
  local group, meta = nil, detail.meta
  if detail.group then
    group, body = string.sub(body, 1, detail.group), string.sub(body, detail.group + 1)
    meta = writeMeta(detail.expires, detail.limit, detail.headers, group)
  end
  if isThere and resent then
    local _, _, _, rest = readMeta(record)
    if string.sub(record, rest) == body then return leave(1) end
  end
  if isPaused then return -4 end
  if isRefused then return -6 end
  if noBatch then return noBatch end
  if maxBytes and #body - detail.headers > maxBytes then return -5 end
  if detail.isTooLate then return -3 end

  if isThere and existing == 'keep' then return leave(0) end
  if not isKnown then locate(due, inFlight, id) end -- raises the error
  local priority = detail.priority
  if isThere and existing == 'postpone' then
    if not priorityNow or (taken and visibleNow > now) then return leave(0) end
    local isDelivered = redis.call('HEXISTS', deliveries, id) == 1
    local expires -- as in reliable-reschedule.lua
    local isLater = detail.visible >= visibleNow
    if isLater then expires = shiftExpiry(messages, isDelivered, id, visibleNow, detail.visible, detail.expires) end
    changeSchedule(priorityNow, taken, record, id, priorityNow, detail.visible, record)
    if not isLater then expires = shiftExpiry(messages, isDelivered, id, visibleNow, detail.visible, detail.expires) end
    if log then noteChange(log, changeHead('r', nil, detail.score, priorityNow == GROUPED and 0 or priorityNow), id, expires) end
    return 3
  end
  if detail.marked then
    local untilMs = not isThere and markedUntil(detail.mark)
    if untilMs then
      local isOwn = resent and (record or canBeOwn(detail, untilMs))
      return leave(isOwn and 1 or -1)
    end
    if detail.isMarkTooLate then return -3 end
  end
  local isCounted = record and not (arePlaces and isLost)
  if not isThere and maxSize and size - (isCounted and 1 or 0) >= maxSize then return -2 end
  if maxSize and not isCounted then size = size + 1 end
  if group and settings.grouped ~= '1' then
    redis.call('HSET', config, 'grouped', '1')
    settings.grouped = '1'
  end
  if not record and not detail.marked then
    collect(id, detail, meta .. body, group)
    return 1
  end

  -- In this order, so that after an error between the writes every record is in a schedule, and every mark has its message.
  if record then
    redis.call('HDEL', deliveries, id)
    redis.pcall('HDEL', failures, id)
  end
  if taken and isAtLimit(settings, inFlight, now) then publishSlot(messages, now) end
  changeSchedule(priorityNow, taken, record, id, priority, detail.visible, meta .. body)
  redis.call('HSET', messages, id, meta .. body)
  if not record then forgetLeftBehind(deliveries, inFlight, {id}) end
  if detail.marked then redis.call('ZADD', once, string.format('%.0f', detail.marked), detail.mark) end
  if log then noteAdded(id, detail, meta .. body) end
  if record and leaveBatch then
    local before = maxSize and redis.call('HLEN', messages)
    leaveBatch(id, (isThere or isLost) and 'removed' or 'expired')
    if maxSize then size = size + redis.call('HLEN', messages) - before end -- including the last message of a batch
  end
  join(id)
  if flushBatch then flushBatch() end
  return isThere and 2 or 1
end

-- Some records are read together; not all, because existing ones can be large.
local reply, records = {string.format('%.0f', now)}, nil
for n, id in ipairs(ids) do
  local place = (n - 1) % TOGETHER
  if place == 0 then records = redis.call('HMGET', messages, unpack(ids, n, math.min(n + TOGETHER - 1, #ids))) end
  reply[n + 1] = add(id, records[place + 1], details[ARGV[3 * n + 6]], ARGV[3 * n + 7])
end
flush()
refreshGroups(groups, touched, {})
writeChanges(log, changes, config, client)

-- a write that changes nothing: all earlier writes reach every replica before it
if durable and isLeft then
  local record = redis.call('HGET', messages, ids[1])
  redis.call('HSET', messages, ids[1], record or '')
  if not record then redis.call('HDEL', messages, ids[1]) end
end

-- Removes more marks than were added, so that they do not pile up. Last, because after a write that takes no memory Redis would not refuse
-- the other writes at maxmemory; and an error here must not affect added messages. The marks are not read, because they can be of any size.
local most = 20 + 2 * #ids
local stale = redis.pcall('ZCOUNT', once, '-inf', now)
if type(stale) == 'number' and stale > 0 then redis.call('ZREMRANGEBYRANK', once, 0, math.min(stale, most) - 1) end
local far = isMarking and redis.pcall('ZCOUNT', once, '(' .. string.format('%.0f', latestMark), '+inf')
if type(far) == 'number' and far > 0 then redis.call('ZREMRANGEBYRANK', once, -math.min(far, most), -1) end
return reply
