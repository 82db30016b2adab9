-- Hand out visible messages, the highest priority first and within a priority by the time at which they became visible. Until
-- the visibility ends no other caller gets them. The script also returns messages whose visibility has ended, removes expired
-- ones, and moves those delivered too often to the dead letters. A message that a caller prefetches (`beforehand`) counts as an attempt
-- only from when the caller extends it as begun. If it never does, the next caller that prefetches the message has to extend it before
-- handling it. At the limits of the queue it hands out nothing, and returns when the rate admits the next claim; the script that ends a
-- claim announces that. Works for about `budgetUs`, with about 1 MiB of records, and then returns, however many are left.
--
-- KEYS[1] messages      hash  id -> record
-- KEYS[2] deliveries    hash  id -> "<attempts>", in flight "<attempts> <token>"; "<attempts>~" after one that was not begun
-- KEYS[3] failures      hash  id -> a line for each failed attempt
-- KEYS[4] config        hash  the queue's settings
-- KEYS[5] deadMessages  hash  `messages` of the dead-letter queue
-- KEYS[6] deadFailures  hash  `failures` of the dead-letter queue
-- KEYS[7] deadDue       zset  `due` of the dead-letter queue
-- KEYS[8] inFlight      zset  priority and id -> when its visibility ends, epoch ms
-- KEYS[9] repeats       hash  name -> the last tick and the definition
-- KEYS[10] ticks  zset  name -> when its next message has to be prepared, epoch ms
-- KEYS[11] due0  zset  id -> when it is visible, epoch ms; priority 0
-- KEYS[12] due1  zset  id -> when it is visible, epoch ms; priority 1
-- KEYS[13] due2  zset  id -> when it is visible, epoch ms; priority 2
-- KEYS[14] due3  zset  id -> when it is visible, epoch ms; priority 3
-- KEYS[15] due4  zset  id -> when it is visible, epoch ms; priority 4
-- KEYS[16] due5  zset  id -> when it is visible, epoch ms; priority 5
-- KEYS[17] due6  zset  id -> when it is visible, epoch ms; priority 6
-- KEYS[18] due7  zset  id -> when it is visible, epoch ms; priority 7
-- KEYS[19] due8  zset  id -> when it is visible, epoch ms; priority 8
-- KEYS[20] due9  zset  id -> when it is visible, epoch ms; priority 9
-- KEYS[21] changes      stream  the queue's changes
-- KEYS[22] deadConfig   hash    `config` of the dead-letter queue
-- KEYS[23] deadChanges  stream  `changes` of the dead-letter queue
-- KEYS[24] completed    hash  id -> record of a completed message
-- KEYS[25] completedAt  zset  id -> when it was completed, epoch ms
-- KEYS[26] deadDeliveries  hash  `deliveries` of the dead-letter queue
-- KEYS[27] rate  string  the claims of the last period, if their rate is limited
-- KEYS[28] due10  zset  id -> when it is visible, epoch ms; messages with a group
-- KEYS[29] groupOrder  zset  group, due time and id of the messages with a group, in the order of their bytes
-- KEYS[30] groupTurns  zset  group -> its turn
-- KEYS[31] groupWakes  zset  group -> when it can have a turn, epoch ms
-- KEYS[32] groups  hash  group -> its claims, and when they were
-- KEYS[33] groupPauses  zset  the paused groups
-- KEYS[34] batches    hash  the batch of a message, the counts of a batch, its last message: see shared/batches.lua
-- KEYS[35] batchesAt  zset  finished batch -> when, epoch ms
-- KEYS[36] deadBatches    hash  `batches` of the dead-letter queue
-- KEYS[37] deadBatchesAt  zset  `batchesAt` of the dead-letter queue
-- KEYS[38] deadInFlight   zset  `inFlight` of the dead-letter queue
-- KEYS[39] taskPauses  zset  paused task -> its number
-- KEYS[40] once  zset  ids and payload digests that must not be added again
--
-- ARGV[1] channel       text     announces when messages become visible
-- ARGV[2] deadChannel   text     `channel` of the dead-letter queue
-- ARGV[3] nowMs         integer  the caller's clock, or -1 for the server's
-- ARGV[4] budgetUs      integer  microseconds to work before returning
-- ARGV[5] count         integer  most messages to hand out
-- ARGV[6] visibilityMs  integer  for how long no other client gets them; -1 for the queue's
-- ARGV[7] token         text     identifies this delivery
-- ARGV[8] idleMs        integer  when nothing is left, the other clients wait this long before they poll again
-- ARGV[9] announce      flag     publish the time of the next poll even if nothing was handed out
-- ARGV[10] beforehand   flag     the caller prefetches, and does not begin to handle them yet
-- ARGV[11] repeatBytes  integer  the largest value of a repeat; a larger one is set aside unread
-- ARGV[12] client       text     the caller
--
-- returns {now in ms with fractions, when something becomes visible next or "", subscribers of the channel, visibility in ms, how many
--   came back, expired, became dead letters, for how many repeats the caller has to prepare the next message, the first key of another
--   type and the server's error or "", how many members of schedules were moved, removed or put off and how many records
--   without a message or place were found, for each of those repeats two: its name,
--   its value or nil where that is too large; then for messages of one priority and number of
--   attempts that follow each other: the priority, "<attempts> <token>", or "<attempts> ~<token>" where it must be extended as begun
--   before it is handled, how many they are, and for each of them three: its id, when it became visible, record}
local messages, deliveries, failures, config, inFlight = KEYS.messages, KEYS.deliveries, KEYS.failures, KEYS.config, KEYS.inFlight
local repeats, ticks, largestRepeat = KEYS.repeats, KEYS.ticks, tonumber(ARGV.repeatBytes)
local rateClaims = KEYS.rate
local due = {KEYS.due0, KEYS.due1, KEYS.due2, KEYS.due3, KEYS.due4, KEYS.due5, KEYS.due6, KEYS.due7, KEYS.due8, KEYS.due9}
local queue = {messages = messages, deliveries = deliveries, failures = failures}
local dead = {messages = KEYS.deadMessages, failures = KEYS.deadFailures, due = KEYS.deadDue, config = KEYS.deadConfig, changes = KEYS.deadChanges, deliveries = KEYS.deadDeliveries, batches = KEYS.deadBatches}
local MAX = 9007199254740991
local PREPARE_MS = 1000 -- how long the caller has to prepare the next messages of repeats before another client is asked
local LATER_MS = 60000 -- the wait before a retry of a step that a key of another type prevented
local MOST = 1000 -- the most messages examined by one script, also where scripts cannot measure time
local BYTES = 1048576 -- the most bytes of records that one script reads, except for the first record
local LONGEST = 65536 -- the longest name in a schedule
local MOST_BACK = 100 -- the most messages that one script brings back
local PAGE, SMALL = 10, 16384 -- a page is read unmeasured if its first record is not larger than `SMALL`
-- A small hash of short values is a list, which Redis searches from its start for each of many. One long value, which the delivery
-- overwrites in the same command, makes it a table.
local MANY, LONG = 16, string.rep(' ', 65)
local channel, token = ARGV.channel, ARGV.token
local budget, want = tonumber(ARGV.budgetUs), tonumber(ARGV.count)

-- include shared/elapsed.lua

local nowExact = tonumber(ARGV.nowMs) >= 0 and tonumber(ARGV.nowMs) or started / 1000
local now = math.floor(nowExact)

local function isOver()
  return elapsed() >= budget
end

-- include shared/names.lua

-- include shared/schedules.lua

-- include shared/aside.lua

-- include shared/task-numbers.lua

-- include shared/record.lua

-- include shared/failures.lua

-- include shared/progress-line.lua

-- include shared/note-failure.lua

-- include shared/change-log.lua

-- include shared/dead-letter.lua

-- include shared/bypass-oom-check.lua

-- include shared/settings.lua

-- include shared/surplus.lua

-- include shared/ends.lua

-- include shared/has-batches.lua

-- include shared/drop-dead.lua

-- include shared/limits.lua

-- include shared/rate-limit.lua

-- include shared/groups.lua

local settings = stored(config, 'changes', 'visibilityTimeout', 'deliveryLimit', 'deadLetters', 'pollPaused', 'keepCompleted', 'concurrency', 'rateLimit', 'grouped',
  'groupConcurrency', 'groupRateLimit', 'batched', 'tasks')
local groups = openGroups({inFlight = inFlight, schedule = KEYS.due10, order = KEYS.groupOrder, turns = KEYS.groupTurns, wakes = KEYS.groupWakes, states = KEYS.groups, pauses = KEYS.groupPauses, tasks = KEYS.taskPauses}, config, now)
groups.isRead, groups.concurrency, groups.rate = true, setting(settings.groupConcurrency, 1, MOST_CLAIMS), rateOf(settings.groupRateLimit)
local log = settings.changes and openLog(settings.changes)

-- include shared/longest-visibility.lua

local visibility = tonumber(ARGV.visibilityMs)
if visibility < 0 then visibility = setting(settings.visibilityTimeout, 1, LONGEST_VISIBILITY) or 30000 end
visibility = math.min(visibility, LONGEST_VISIBILITY, MAX - now)
local ending = string.format('%.0f', now + visibility)
local hiddenUntil = ending
local limitOfAll = setting(settings.deliveryLimit, 1, 1000000) or 10
if settings.deadLetters == '0' then dead = nil end
if settings.pollPaused == '1' then want = 0 end
bypassOomCheck(inFlight)

-- include shared/beforehand.lua

local isBeforehand = ARGV.beforehand == '1'
if isBeforehand then ending = beforehand(now + visibility) end

-- include shared/attempts.lua

-- The first key of another type, and the server's error.
local problem = ''
local function note(which, text)
  if problem == '' then problem = which .. ': ' .. text end
end

-- Messages of a schedule of another type stay in flight until later, so that they do not delay other priorities.
local isSchedule
do -- Lua has room for 200 local names in a script
  local areSchedules = {}
  isSchedule = function(priority)
    if areSchedules[priority] == nil then
      local size = redis.pcall('ZCARD', due[priority + 1])
      areSchedules[priority] = type(size) == 'number'
      if not areSchedules[priority] then note('the schedule of priority ' .. priority, size.err) end
    end
    return areSchedules[priority]
  end
end

-- The keys of groups are checked before any claim: a later error would cost each message an attempt, unseen.
local areGroups
local function canGroup()
  if areGroups ~= nil then return areGroups end
  areGroups = true
  local sizes = {redis.pcall('HLEN', groups.states)}
  for n, key in ipairs({groups.schedule, groups.order, groups.turns, groups.wakes, groups.pauses}) do sizes[n + 1] = redis.pcall('ZCARD', key) end
  for _, size in ipairs(sizes) do
    if type(size) == 'table' then
      areGroups = false
      note('the groups', size.err)
    end
  end
  return areGroups
end

-- Ids by how their messages have ended, where there are batches.
local left = hasBatches(settings, KEYS.batches) and {expired = {}, dead = {}, removed = {}}

-- Forgets ids that are in a schedule without a message; together, because there can be any number.
local function forget(ids)
  for n = 1, left and #ids or 0 do noteEnded(left.removed, ids[n]) end
  redis.call('HDEL', deliveries, unpack(ids))
  redis.pcall('HDEL', failures, unpack(ids))
end

-- include poll/take-back.lua

-- Most queues use one priority: a single command skips the schedules of the nine others, here and for the time of the next poll.
if redis.call('EXISTS', unpack(due, 2)) == 0 then due = {due[1]} end

local reply = {'', '', 0, visibility, returned, 0, 0, 0, '', 0}

local isGrouped = settings.grouped and canGroup() -- whatever another program has written there

-- include poll/tasks.lua

-- include poll/ticks.lua

-- include poll/free-slots.lua

local expired, deadLettered, handed, looked, bytes = 0, 0, 0, 0, 0

-- include poll/hand-out.lua

-- include poll/claim-plain.lua

-- One poll of about thirty looks for lost messages also if it finds others. The time chooses it, by a period that is no multiple of usual
-- intervals.
groups.looks = now % 61 < 2

-- include poll/claim-turns.lua

if isGrouped then takeTurns() else handed = claimPlain(want, hand) end

if window and (handed > 0 or window.isMoved) then
  if handed > 0 then addClaims(rate, window, handed, math.ceil(nowExact)) end -- rounded up, so that no period is shorter
  -- the caller's clock may be slower than the server's, such as that of a test
  local forMs = tonumber(ARGV.nowMs) < 0 and rate.per + 1000 or LONGEST_PER_MS
  local kept = redis.pcall('SET', rateClaims, windowText(window), 'PX', forMs)
  if kept.err then note('the claims of the rate limit', kept.err) end
end
-- also in a poll that finds nothing, so that old dead letters are dropped without a new one
local dropped
if deadLettered > 0 or handed == 0 then dropped = dropDead(config, dead, deadLettered, now) end
-- The search for records whose message or place was deleted: by about one poll of thirty, and of those that found no message by one of
-- seven, in the first 50 ms of 350. So a search that found some can plan the next one, although the poll for it comes late.
local search = {isDue = groups.looks or handed == 0 and now % 350 < 50, found = 0, again = now - now % 350 + 350}
if left or dropped or search.isDue and settings.keepCompleted then
-- include shared/batches.lua

-- include shared/empty-batches.lua

-- include poll/left-records.lua

  local batches = {key = KEYS.batches, at = KEYS.batchesAt, messages = messages, deliveries = deliveries, inFlight = inFlight, now = now, log = log}
  if left then
    leaveBatches(batches, left.expired, 'expired')
    leaveBatches(batches, left.dead, 'dead')
    leaveBatches(batches, left.removed, 'removed')
    if search.isDue then search.found = lookAtBatches(batches) end
  end
  if search.isDue and settings.keepCompleted then search.found = search.found + lookAtCompleted(KEYS.completed, KEYS.completedAt) end
  changed = changed + search.found
  if dropped then
    leaveBatches({key = KEYS.deadBatches, at = KEYS.deadBatchesAt, messages = dead.messages, deliveries = dead.deliveries, inFlight = KEYS.deadInFlight, now = now, log = dead.log}, dropped, 'removed')
  end
end
if search.isDue and settings.batched and not left then redis.call('HDEL', config, 'batched') end -- a new batch sets it again
writeChanges(log, KEYS.changes, config, ARGV.client)
forgetCompleted(KEYS.completed, KEYS.completedAt, ended)
publishEnds(messages, ended)
if dead then writeChanges(dead.log, dead.changes, dead.config, ARGV.client) end

-- After an error here the caller would get none of the messages: each would lose an attempt, and become a dead letter unseen.
local function publish(where, at)
  local published = redis.pcall('PUBLISH', where, string.format('%.0f', at))
  if type(published) == 'table' and published.err then note('the channel', published.err) end
end

-- At the limit a slot is free when a visibility ends, or when the end of a claim is announced.
local function nextTime()
-- include poll/shorten-far.lua

  -- Another program, or a Redis that came back without the settings, can have forgotten that there is any: a poll that found nothing looks,
  -- and the next one looks after it.
  local looks = handed == 0 or groups.looks
  if looks and shortenFar() then return now end
  local others, othersRemoved = earliest({inFlight, ticks}, LONGEST)
  changed = changed + othersRemoved
  if concurrency and claims + handed >= concurrency then return areForgedLeft and now or others end
  local first, removed = now, 0
  if not isGrouped or groups.isOrdered ~= false and redis.call('ZCARD', groups.turns) == 0 then
    first, removed = earliest(isGrouped and {groups.wakes, unpack(arePlain and due or {})} or due, LONGEST)
  end
  changed = changed + removed
  if first and aside.has(first) then first = nil end -- only messages set aside
  if looks then
    local function mark(name, schedules, low, high)
      local some = 0
      for _, schedule in ipairs(schedules) do
        if some == 0 then some = redis.pcall('ZCOUNT', schedule, low, high) end
      end
      if type(some) == 'number' and some > 0 and redis.call('HSET', config, name, '1') == 1 then first = now end
    end
    if not settings.grouped then mark('grouped', {groups.schedule, groups.wakes}, '-inf', '+inf') end
    if left and not settings.batched and type(redis.pcall('HLEN', KEYS.batches)) == 'number' then redis.call('HSET', config, 'batched', '1') end
    if not settings.tasks then
      mark('tasks', {groups.tasks}, 1, aside.resumed + aside.most)
      mark('tasks', isGrouped and {groups.schedule, unpack(due)} or due, aside.text, aside.to)
    end
  end
  if looks and asideOf and aside.giveBackUnowned() then first = now end
  if aside.isMore then first = now end
  if search.found > 0 then first = math.min(first or search.again, search.again) end
  local opens = window and opensAt(rate, window)
  if first and opens then first = math.max(first, opens) end
  return first and math.min(first, others or first) or others
end

local following = nextTime()
-- One poll of about thirty, and one of seven of those that found nothing, as a queue without messages has its sweeps only; 7 divides no
-- usual sweep.
if groups.looks or handed == 0 and now % 7 == 0 then
-- include poll/persist-keys.lua

  persistKeys(
    {messages, deliveries, failures, config, inFlight, repeats, ticks, KEYS.deadMessages, KEYS.deadFailures, KEYS.deadDue, KEYS.deadConfig, KEYS.deadChanges, KEYS.deadDeliveries, KEYS.deadBatches, KEYS.deadBatchesAt, KEYS.deadInFlight},
    {KEYS.due0, KEYS.due1, KEYS.due2, KEYS.due3, KEYS.due4, KEYS.due5, KEYS.due6, KEYS.due7, KEYS.due8, KEYS.due9, KEYS.due10},
    {KEYS.changes, KEYS.completed, KEYS.completedAt, KEYS.groupOrder, KEYS.groupTurns, KEYS.groupWakes, KEYS.groups, KEYS.groupPauses, KEYS.batches, KEYS.batchesAt, KEYS.taskPauses, KEYS.once})
end
following = following and math.ceil(following)
if settings.pollPaused == '1' then following = nil end
if handed + returned + #ticking + expired + deadLettered > 0 or aside.areBack or ARGV.announce == '1' then
  local announced = following or now + tonumber(ARGV.idleMs)
  if announced <= MAX then publish(channel, math.floor(announced)) end
end
if deadLettered > 0 and dead then publish(ARGV.deadChannel, now) end
local subscribers = redis.pcall('PUBSUB', 'NUMSUB', channel)
reply[1], reply[2] = string.format('%.3f', nowExact), following and string.format('%.0f', following) or ''
reply[3], reply[6], reply[7], reply[9], reply[10] = subscribers[2] or 0, expired, deadLettered, problem, changed + looked
return reply
