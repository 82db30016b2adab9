-- Hand out visible messages, those of the highest priority first and of one priority by when they became visible. Until
-- the visibility ends no other caller gets them. On the way the script returns messages whose visibility has ended, removes expired
-- ones and makes dead letters of those delivered too often. A message that a caller prefetches (`beforehand`) counts as an attempt only from when the
-- caller extends it as begun. If it never does, the next caller that prefetches the message has to extend it before handling it.
-- At the limits of the queue it hands out nothing, and says when the rate admits the next; the end of a claim is announced where it ends.
-- Works for about `budgetUs`, with about 1 MiB of records, and then returns, however many are left.
--
-- KEYS[1] messages      hash  id -> record
-- KEYS[2] deliveries    hash  id -> "<attempts>", in flight "<attempts> <token>"; "<attempts>~" after one that was not begun
-- KEYS[3] failures      hash  id -> a line for each failed attempt
-- KEYS[4] config        hash  what `setConfig` and pausing say
-- KEYS[5] deadMessages  hash  the same of the queue of dead letters
-- KEYS[6] deadFailures  hash  the same of the queue of dead letters
-- KEYS[7] deadDue       zset  the same of the queue of dead letters
-- KEYS[8] inFlight      zset  priority and id -> when its visibility ends, epoch ms
-- KEYS[9] repeats       hash  name -> the last tick, and how it goes on
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
-- KEYS[21] changes      stream  what the scripts have changed
-- KEYS[22] deadConfig   hash    the same of the queue of dead letters
-- KEYS[23] deadChanges  stream  the same of the queue of dead letters
-- KEYS[24] completed    hash  id -> what is kept of a completed message
-- KEYS[25] completedAt  zset  id -> when it was completed, epoch ms
-- KEYS[26] deadDeliveries  hash  the same of the queue of dead letters
-- KEYS[27] rate  string  the claims of the last stretch of time, where there is a limit to their rate
-- KEYS[28] due10  zset  id -> when it is visible, epoch ms; of those with a group
-- KEYS[29] groupOrder  zset  group, when it is visible, and id of those with a group, in the order of their bytes
-- KEYS[30] groupTurns  zset  group -> its turn
-- KEYS[31] groupWakes  zset  group -> from when on it can have a turn, epoch ms
-- KEYS[32] groups  hash  group -> its claims, and when they were
-- KEYS[33] groupPauses  zset  the groups that are paused
-- KEYS[34] batches    hash  the batch of a message, the counts of a batch, its last message: see shared/batches.lua
-- KEYS[35] batchesAt  zset  batch that has finished -> when, epoch ms
-- KEYS[36] deadBatches    hash  the same of the queue of dead letters
-- KEYS[37] deadBatchesAt  zset  the same of the queue of dead letters
-- KEYS[38] deadInFlight   zset  the same of the queue of dead letters
--
-- ARGV[1] channel       text     announces when something becomes visible
-- ARGV[2] deadChannel   text     the same of the queue of dead letters
-- ARGV[3] nowMs         integer  the caller's clock, or -1 for the server's
-- ARGV[4] budgetUs      integer  microseconds to work before returning
-- ARGV[5] count         integer  most messages to hand out
-- ARGV[6] visibilityMs  integer  for how long no other client gets them; -1 for what the queue says
-- ARGV[7] token         text     identifies this delivery
-- ARGV[8] idleMs        integer  when nothing is left, the other clients wait this long before they poll again
-- ARGV[9] announce      flag     publish the time of the next poll even if nothing was handed out
-- ARGV[10] beforehand   flag     whether the caller has not begun to handle them
-- ARGV[11] repeatBytes  integer  what is kept of a repeat is not larger; what is larger is not read, and not asked for again
-- ARGV[12] client       text     the caller
--
-- returns {now in ms with fractions, when something becomes visible next or "", subscribers of the channel, visibility in ms, how many
--   came back, expired, became dead letters, for how many repeats the caller has to prepare the next message, the first key of another
--   type and the server's error or "", how many members of schedules were moved, removed or put off, for each of those repeats two: its name,
--   its value or nil where that is too large; then for messages of one priority and number of
--   attempts that follow each other: the priority, "<attempts> <token>", or "<attempts> ~<token>" where it must be extended as begun
--   before it is handled, how many they are, and for each of them three: its id, when it became visible, record}
local messages, deliveries, failures, config, inFlight = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[8]
local repeats, ticks = KEYS[9], KEYS[10]
local due = {KEYS[11], KEYS[12], KEYS[13], KEYS[14], KEYS[15], KEYS[16], KEYS[17], KEYS[18], KEYS[19], KEYS[20]}
local queue = {messages = messages, deliveries = deliveries, failures = failures}
local dead = {messages = KEYS[5], failures = KEYS[6], due = KEYS[7], config = KEYS[22], changes = KEYS[23], deliveries = KEYS[26]}
local MAX = 9007199254740991
local PREPARE_MS = 1000 -- so much time has the caller to prepare the next messages of repeats; then others are asked
local LATER_MS = 60000 -- after which it is tried again what a key of another type prevents
local MOST = 1000 -- looked at by one script, also where the clock stands still within scripts
local BYTES = 1048576 -- of records read by one script, but for the first
local FIRST_READ, MOST_READ, SMALL_MEMBERS = 4, 32, 4096
local LONGEST = 65536 -- of a name in a schedule
local MOST_BACK = 100 -- brought back by one script
local PAGE, SMALL = 16, 16384 -- so many are read unmeasured where the first of them is not larger than this
-- A small hash of short values is a list, which Redis searches from its start for each of many. One long value, which the delivery
-- overwrites in the same command, makes it a table.
local MANY, LONG = 16, string.rep(' ', 65)
local channel, token = ARGV[1], ARGV[7]
local budget, want = tonumber(ARGV[4]), tonumber(ARGV[5])

local function microseconds()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end

local started = microseconds()
local nowExact = tonumber(ARGV[3]) >= 0 and tonumber(ARGV[3]) or started / 1000
local now = math.floor(nowExact)

-- A clock that was set back ends the work.
local function isOver()
  local elapsed = microseconds() - started
  return elapsed < 0 or elapsed >= budget
end

-- include shared/schedules.lua

-- include shared/record.lua

-- include shared/failures.lua

-- include shared/progress-line.lua

-- include shared/note-failure.lua

-- include shared/change-log.lua

-- include shared/dead-letter.lua

-- include shared/bypass-oom-check.lua

-- include shared/settings.lua

-- include shared/names.lua

-- include shared/ends.lua

-- include shared/drop-dead.lua

-- include shared/limits.lua

-- include shared/rate-limit.lua

-- include shared/groups.lua

local settings = stored(config, 'changes', 'visibilityTimeout', 'deliveryLimit', 'deadLetters', 'pollPaused', 'keepCompleted', 'concurrency', 'rateLimit', 'grouped',
  'groupConcurrency', 'groupRateLimit', 'batched')
local groups = openGroups({inFlight = inFlight, schedule = KEYS[28], order = KEYS[29], turns = KEYS[30], wakes = KEYS[31], states = KEYS[32], pauses = KEYS[33]}, config, now)
groups.isRead, groups.concurrency, groups.rate = true, setting(settings.groupConcurrency, 1, MOST_CLAIMS), rateOf(settings.groupRateLimit)
local log = settings.changes and openLog(settings.changes)
local visibility = tonumber(ARGV[6])
if visibility < 0 then visibility = setting(settings.visibilityTimeout, 1) or 30000 end
visibility = math.min(visibility, MAX - now)
local ending = string.format('%.0f', now + visibility)
local hiddenUntil = ending
local limitOfAll = setting(settings.deliveryLimit, 1, 1000000) or 10
if settings.deadLetters == '0' then dead = nil end
if settings.pollPaused == '1' then want = 0 end
bypassOomCheck(inFlight)

-- include shared/beforehand.lua

local isBeforehand = ARGV[10] == '1'
if isBeforehand then ending = beforehand(now + visibility) end

-- include shared/attempts.lua

-- The first key that is not what it should be, and the server's error.
local problem = settings.err and 'the configuration: ' .. settings.err or ''
local function note(which, text)
  if problem == '' then problem = which .. ': ' .. text end
end

-- What belongs to a schedule of another type stays in flight until later, so that it keeps back nothing of other priorities.
local areSchedules = {}
local function isSchedule(priority)
  if areSchedules[priority] == nil then
    local size = redis.pcall('ZCARD', due[priority + 1])
    areSchedules[priority] = type(size) == 'number'
    if not areSchedules[priority] then note('the schedule of priority ' .. priority, size.err) end
  end
  return areSchedules[priority]
end

-- The keys of groups are looked at before anything is claimed: an error after that would cost each message an attempt, unseen.
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
local left = settings.batched and {expired = {}, dead = {}, removed = {}}

-- What is known of ids that are in a schedule only, and are no messages. Together, as there can be any number of them.
local function forget(ids)
  for n = 1, left and #ids or 0 do left.removed[#left.removed + 1] = ids[n] end
  redis.call('HDEL', deliveries, unpack(ids))
  redis.pcall('HDEL', failures, unpack(ids))
end

-- What was not acknowledged in time comes back, as visible since then.
local returned, changed, backBytes = 0, 0, 0
local freed, ends = {}, {} -- the groups of them, and how many claims of each have ended
local function takeBack(member, priority, id, ended)
  local delivery = deliveryOf(deliveries, id)
  local attempts = attemptsOf(delivery)
  if isUnbegun(ended) and not delivery and priority ~= GROUPED then -- the last message of a batch: no consumer had it
    redis.call('ZADD', due[priority + 1], string.format('%.0f', ended), id)
    redis.call('ZREM', inFlight, member)
    return
  end
  if isUnbegun(ended) then
    attempts = math.max(0, attempts - 1)
    redis.call('HSET', deliveries, id, string.format('%.0f~', attempts))
    ended = string.format('%.0f', ended)
    if log then noteChange(log, changeHead('l', attempts, ended), id) end
  else
    local stays = delivery and string.find(delivery, ' ~', 1, true) and '~' or '' -- it may have killed its process
    redis.call('HSET', deliveries, id, attempts .. stays)
    noteFailure(failures, id, attempts, now, '"its visibility ended"')
    if log then noteChange(log, changeHead('f', attempts, ended), id, '"its visibility ended"') end
  end
  local group, size
  if priority == GROUPED then
    group, size = groupOf(messages, id)
    backBytes = backBytes + size
  end
  if group then addToGroup(groups, group, math.ceil(tonumber(ended)), id)
  else redis.call('ZADD', due[priority == GROUPED and 1 or priority + 1], ended, id) end
  redis.call('ZREM', inFlight, member)
  if group and not ends[group] then freed[#freed + 1] = group end
  if group then ends[group] = (ends[group] or 0) - 1 end
  returned = returned + 1
end

-- Few at first: nothing says how large they are before they are read.
local step, isLast = FIRST_READ, false
while not isLast do
  local back = redis.call('ZRANGEBYSCORE', inFlight, '-inf', now, 'WITHSCORES', 'LIMIT', 0, step)
  isLast = #back < 2 * step
  local gone, members = {}, {}
  for at = 1, #back, 2 do
    local member, ended = back[at], back[at + 1]
    local priority, id = priorityOf(member), string.sub(member, 2)
    changed = changed + 1
    if redis.call('HEXISTS', messages, id) == 0 then
      gone[#gone + 1], members[#members + 1] = id, member
    elseif priority == GROUPED and canGroup() or priority ~= GROUPED and isSchedule(priority) then
      takeBack(member, priority, id, ended)
    else
      redis.call('ZADD', inFlight, string.format('%.0f', now + LATER_MS), member)
    end
    backBytes = backBytes + #member
    isLast = isLast or returned >= MOST_BACK or changed >= MOST
    if backBytes > BYTES or isOver() then
      isLast = true
      break
    end
  end
  if #gone > 0 then
    forget(gone)
    redis.call('ZREM', inFlight, unpack(members))
  end
  step = MOST_READ
end
refreshGroups(groups, freed, ends)

local reply = {'', '', 0, visibility, returned, 0, 0, 0, '', 0}

-- Repeats whose tick has come.
local ticking, size = {}, 0
if settings.pollPaused ~= '1' then
  ticking = namesOf(10, function(most) return redis.pcall('ZRANGEBYSCORE', ticks, '-inf', now, 'LIMIT', 0, most) end)
end
if ticking.err then note('the times of repeats', ticking.err) end
for _, name in ipairs(ticking) do
  if size >= BYTES then break end -- the others are due still
  local length = redis.pcall('HSTRLEN', repeats, name)
  if type(length) == 'table' then
    note('the repeats', length.err)
    redis.call('ZADD', ticks, string.format('%.0f', now + LATER_MS), name)
  elseif length > tonumber(ARGV[11]) then
    redis.call('ZREM', ticks, name)
    reply[8], size = reply[8] + 1, size + #name
    reply[#reply + 1], reply[#reply + 2] = name, false
  else
    local value = redis.call('HGET', repeats, name)
    if value then
      redis.call('ZADD', ticks, string.format('%.0f', now + PREPARE_MS), name)
      reply[8], size = reply[8] + 1, size + length + #name
      reply[#reply + 1], reply[#reply + 2] = name, value
    else
      redis.call('ZREM', ticks, name)
    end
  end
  changed = changed + 1
end

-- At the limit, a few of the claims that end last: those of no consumer, which another program has written, could hold a slot for ever. What is no
-- message goes; a message without a token comes back with the next poll.
local LOOKED_AT, MOST_LOOKS = 16, 50
local areForgedLeft = false
local function endForged(most)
  local ended = 0
  for _, member in ipairs(namesOf(math.min(most, LOOKED_AT), function(many) return redis.call('ZRANGE', inFlight, -many, -1) end)) do
    local id = string.sub(member, 2)
    if redis.call('HEXISTS', messages, id) == 0 then
      ended = ended + redis.call('ZREM', inFlight, member)
    elseif not string.find(deliveryOf(deliveries, id) or '', ' ', 1, true) then
      redis.call('ZADD', inFlight, string.format('%.0f', now), member)
      ended = ended + 1
    end
  end
  changed = changed + ended
  return ended > 0
end

-- The free slots, and what the rate admits.
local concurrency, rate, claims, window = setting(settings.concurrency, 1, MOST_CLAIMS), rateOf(settings.rateLimit), nil, nil
if concurrency then
  claims = claimsNow(inFlight, now)
  for _ = 1, MOST_LOOKS do
    areForgedLeft = claims >= concurrency and endForged(claims)
    if not areForgedLeft then break end
    claims = claimsNow(inFlight, now)
    areForgedLeft = claims >= concurrency
    if isOver() then break end
  end
  want = math.min(want, math.max(0, concurrency - claims))
end
if rate then
  local text = redis.pcall('GETRANGE', KEYS[27], 0, LONGEST_WINDOW - 1)
  if type(text) == 'table' then note('the claims of the rate limit', text.err) end
  window = windowOf(rate, type(text) == 'string' and text or '', now)
  want = math.min(want, math.max(0, rate.max - window.sum))
end

local expired, deadLettered, handed, looked, bytes = 0, 0, 0, 0, 0
local byAttempt = {}
local function newDelivery(attempt)
  local delivery = byAttempt[attempt] or attempt .. ' ' .. token
  byAttempt[attempt] = delivery
  return delivery
end

-- Few are like that.
local function isSuspect(delivery)
  return isBeforehand and delivery and string.sub(delivery, -1) == '~'
end

-- What most have in common is said once: each part of a reply takes the client longer than it takes Redis.
local last, group, groupPriority, groupDelivery, groupHead = #reply, nil, nil, nil, nil
local function hand(priority, attempt, delivery, id, visible, record)
  if priority ~= groupPriority or delivery ~= groupDelivery then
    reply[last + 1], reply[last + 2], reply[last + 3] = priority, delivery, 0
    group, groupPriority, groupDelivery, last = last + 3, priority, delivery, last + 3
    groupHead = log and changeHead('p', attempt, hiddenUntil, priority == GROUPED and 0 or priority)
  end
  reply[group] = reply[group] + 1
  reply[last + 1], reply[last + 2], reply[last + 3] = id, visible, record
  last = last + 3
  if log then noteChange(log, groupHead, id) end
end

-- The first records as far as they fit, and what is known of their deliveries; the first of all however large it is. They are read
-- in small pages, each one measured where the first of its page is large, so that what is larger than those before it costs one
-- page; to measure each one always costs several hundredths of a poll.
local function fitting(ids)
  local records, delivered = {}, deliveriesOf(deliveries, ids)
  for from = 1, #ids, PAGE do
    local to = math.min(from + PAGE - 1, #ids)
    local first = #ids > 1 and redis.call('HSTRLEN', messages, ids[from]) or 0
    if first > SMALL then
      local size, fits = first, from
      while fits < to do
        size = size + redis.call('HSTRLEN', messages, ids[fits + 1])
        if bytes + size > BYTES then break end
        fits = fits + 1
      end
      to = fits
    end
    if bytes > 0 and bytes + first > BYTES then return records, delivered, from - 1 end
    local page, total = redis.call('HMGET', messages, unpack(ids, from, to)), bytes
    for n = 1, to - from + 1 do
      local record = page[n]
      if record then
        if total > 0 and total + #record > BYTES then
          bytes = total
          return records, delivered, from + n - 2
        end
        total = total + #record
      end
      records[from + n - 1] = record
    end
    bytes = total
    if to < #ids and to < from + PAGE - 1 then return records, delivered, to end
  end
  return records, delivered, #ids
end

-- The first visible ones of a schedule and since when. Ids of other writers can be of any size: a few are read first.
local areSmall = false
local function visibleOf(at, most)
  local schedule, first = due[at], areSmall and most or math.min(most, FIRST_READ)
  local page = redis.pcall('ZRANGEBYSCORE', schedule, '-inf', now, 'WITHSCORES', 'LIMIT', 0, first)
  if page.err then note('the schedule of priority ' .. (at - 1), page.err) end
  if areSmall or #page < 2 * first then return page end
  local size = 0
  for n = 1, #page, 2 do size = size + #page[n] end
  areSmall = size <= SMALL_MEMBERS
  if not areSmall or first == most then return page end
  return redis.call('ZRANGEBYSCORE', schedule, '-inf', now, 'WITHSCORES', 'LIMIT', 0, most)
end

-- How what is claimed without a group is handed out.
local give = hand

-- Where a page had nothing to hand out, the next ones are as large as they may be, however few are wanted: any number of ids can be
-- before the first message.
local ended = settings.keepCompleted and {}
local isFull, least = want == 0, 0

-- What becomes of a message that is not handed out: it expired or was delivered too often; `kept`: the dead letters cannot take it now.
local function endOf(id, attempts, expires, limit)
  if expires and expires <= now then
    deadLetter(queue, nil, id, now)
    expired = expired + 1
    if left then left.expired[#left.expired + 1] = id end
    if log then noteChange(log, 'e,,,', id) end
  elseif attempts < (limit or limitOfAll) then
    return nil
  else
    local failed = deadLetter(queue, dead, id, now)
    if failed then
      note('the dead letters', failed)
      return 'kept'
    end
    deadLettered = deadLettered + 1
    if left then left.dead[#left.dead + 1] = id end
    if log then noteChange(log, changeHead('d', attempts), id) end
  end
  if ended then ended[#ended + 1] = id end
  return 'gone'
end

local byte = string.byte
local function claimPlain()
  for at = 10, 1, -1 do
    local digit = tostring(at - 1)
    while not isFull do
      local page = visibleOf(at, math.min(math.max(want - handed, least), 100))
      if #page == 0 then break end
      local ids, size, found = {}, 0, 0
      for n = 1, #page, 2 do
        local id = page[n]
        size = size + #id
        if size > BYTES and n > 1 then break end -- each is copied some ten times from here on
        found = found + 1
        ids[found] = id
      end
      local records, delivered, fits = fitting(ids)
      isFull = fits < #ids or size > BYTES
      if fits == 0 then break end
      while #ids > fits do ids[#ids] = nil end
      looked = looked + #ids
      local claimed, written, given, kept, strangers = {}, {}, 0, nil, nil
      for n, id in ipairs(ids) do
        if handed + given == want then
          for after = #ids, n, -1 do ids[after] = nil end
          break
        end
        local record, attempts = records[n], delivered[n] and attemptsOf(delivered[n]) or 0
        if not record then -- it is in the schedule only, and no message
          strangers = strangers or {}
          strangers[#strangers + 1] = id
        else
          local expires, limit, outcome -- most records have no meta data, and most messages do not end here
          if byte(record) ~= 0 then expires, limit = readMeta(record) end
          if expires and expires <= now or attempts >= (limit or limitOfAll) then outcome = endOf(id, attempts, expires, limit) end
          if outcome == 'kept' then
            kept = kept or {}
            kept[#kept + 1], kept[#kept + 2] = string.format('%.0f', now + LATER_MS), id
          elseif not outcome then
            local delivery = delivered[n] and isSuspect(delivered[n]) and attempts + 1 .. ' ~' .. token or byAttempt[attempts + 1]
              or newDelivery(attempts + 1)
            local odd, even = 2 * given + 1, 2 * given + 2
            claimed[odd], claimed[even], written[odd], written[even] = ending, digit .. id, id, delivery
            given = given + 1
            give(at - 1, attempts + 1, delivery, id, page[2 * n], record)
          end
        end
      end
      if given > 0 then
        redis.call('ZADD', inFlight, unpack(claimed))
        if given >= MANY then
          redis.call('HSET', deliveries, written[1], LONG, unpack(written))
        else
          redis.call('HSET', deliveries, unpack(written))
        end
      end
      if strangers then forget(strangers) end
      if #ids > 0 then redis.call('ZREMRANGEBYRANK', due[at], 0, #ids - 1) end -- they are its first ones; after an error above they are still there
      if kept then redis.call('ZADD', due[at], unpack(kept)) end
      handed = handed + given
      if given == 0 then least = 100 end
      isFull = isFull or handed >= want or looked >= MOST or isOver()
    end
  end
end

local isGrouped = settings.grouped and canGroup() -- whatever a stranger has written there

-- Round robin: each group has a turn, and the messages without one have one together, under the empty name. Those that are next are looked at
-- together, a round at a time: what each has, how much it may, the messages; then they are claimed in the order of the turns; then all is written.
local PLAIN, SEATS, SLOTS, LATE = '', 100, 128, 16
local arePlain, takeTurns = false, nil
if isGrouped then -- most queues have no groups, and to make these functions takes time
local of = groupFunctions()
local headsOf, isPausedGroup, isGroupFull, statesOf, readState = of.headsOf, of.isPausedGroup, of.isGroupFull, of.statesOf, of.readState
local textOf, noteState, nextTurn, newPlaces, place, writePlaces = of.textOf, of.noteState, of.nextTurn, of.newPlaces, of.place, of.writePlaces
local bringTurns, isOrdered = of.bringTurns, of.isOrdered
local areHeadsSmall, leastSlots = false, 0

-- The first messages of each of these groups, as many as it may have now and one more; and those that are no messages' go.
local function seat(names, deep)
  local named, seats, ids, heads, forged, size = {}, {}, {}, {}, {}, 0
  for _, group in ipairs(names) do
    if group ~= PLAIN and #group <= LONGEST_GROUP then push(named, group) end
  end
  local texts, at = statesOf(groups, named), 0
  for _, group in ipairs(names) do
    looked = looked + 1
    if group == PLAIN then
      push(seats, {isPlain = true, heads = {}, most = 0})
    elseif #group > LONGEST_GROUP then -- of another program
      redis.call('ZREM', groups.turns, group)
    else
      at = at + 1
      local state, most = readState(groups, texts[at]), math.huge
      if groups.concurrency then most = isGroupFull(groups, state) and 0 or math.max(1, groups.concurrency - state.claims) end
      if groups.rate then most = math.min(most, groups.rate.max - state.window.sum) end
      local isPaused = isPausedGroup(groups, group)
      if isPaused then most = 0 end
      local read = math.max(0, math.min(deep, most)) + 1
      local one = {group = group, state = state, most = most, heads = headsOf(groups, group, read), next = 1, begun = 0, isPaused = isPaused}
      one.isMore = #one.heads == read
      push(seats, one)
      for _, head in ipairs(one.heads) do
        size = size + #head.member
        if head.at then
          push(ids, head.id)
          push(heads, head)
        else
          push(forged, head.member)
        end
      end
      if size > BYTES then break end
    end
  end
  areHeadsSmall = areHeadsSmall or size <= SMALL_MEMBERS * 4
  local scores = #ids > 0 and redis.call('ZMSCORE', groups.schedule, unpack(ids)) or {}
  for n, head in ipairs(heads) do
    if not scores[n] then
      push(forged, head.member)
      head.at = nil
    end
  end
  if #forged > 0 then
    redis.call('ZREM', groups.order, unpack(forged))
    for _, one in ipairs(seats) do
      local whole = {}
      for _, head in ipairs(one.heads) do
        if head.at then push(whole, head) end
      end
      one.isMore = one.isMore or #whole < #one.heads
      one.heads = whole
    end
  end
  return seats, size > BYTES
end

-- The messages that have the next turns are read, as far as they fit.
local function readSlots(seats, deep, slots, visible)
  local ids, read = {}, {}
  for pass = 1, deep do
    for _, one in ipairs(seats) do
      local head = pass <= one.most and one.heads[pass]
      if one.isPlain and pass <= visible then slots = slots - 1 end
      if head and head.at <= now and #ids < slots then
        push(ids, head.id)
        push(read, head)
      end
    end
  end
  if #ids == 0 then return end
  local records, delivered, fits = fitting(ids)
  for n = 1, fits do
    read[n].isRead, read[n].record, read[n].delivered = true, records[n], delivered[n]
  end
  if fits < #ids then isFull = true end -- for the bytes
end

-- Claims messages in the order of the turns. Returns what is to be written.
local function claimTurns(seats, deep, visible)
  local done = {claimed = {}, written = {}, members = {}, ids = {}, strangers = {}, kept = {}, given = {}, plain = 0}
  local function claim(one, head)
    looked = looked + 1
    push(done.members, head.member)
    push(done.ids, head.id)
    local attempts = head.delivered and attemptsOf(head.delivered) or 0
    local outcome = head.record and endOf(head.id, attempts, readMeta(head.record))
    if not head.record then push(done.strangers, head.id)
    elseif outcome == 'kept' then
      push(done.kept, {group = one.group, id = head.id})
      one.keptAt = now + LATER_MS
    elseif not outcome then
      local delivery = isSuspect(head.delivered) and attempts + 1 .. ' ~' .. token or newDelivery(attempts + 1)
      push(done.claimed, ending, memberOf(GROUPED, head.id))
      push(done.written, head.id, delivery)
      push(done.given, {one = one, head = head, attempts = attempts + 1, delivery = delivery})
      one.begun = one.begun + 1
      return true
    end
    return false
  end
  for pass = 1, deep do
    for _, one in ipairs(seats) do
      if handed + #done.given >= want then return done end
      if one.isPlain then
        if done.plain < visible then
          done.plain = done.plain + 1
          push(done.given, {one = one})
        end
      else
        local hasClaimed = false
        while not hasClaimed and one.begun < one.most do
          local head = one.heads[one.next]
          if not head or head.at > now then break end
          if not head.isRead then return done end -- it is the first one of the next round
          one.next = one.next + 1
          hasClaimed = claim(one, head)
        end
        if not hasClaimed and one.begun < one.most and not one.heads[one.next] and one.isMore then return done end
      end
    end
  end
  return done
end

-- Claims messages without a group for so many turns, which may be fewer than were seen. Appends the arguments to hand them out to `got`.
local function claimPlainTurns(got, turns)
  if turns <= 0 then return end
  local all, before = want, handed
  give = function(...) got[#got + 1] = {...} end
  want = handed + turns
  claimPlain()
  if handed >= want then isFull = false end -- only these turns have all they want; otherwise something else ends the poll, such as the bytes
  want, give, handed = all, hand, before
end

local function writeTurns(seats, done)
  if #done.claimed > 0 then
    redis.call('ZADD', inFlight, unpack(done.claimed))
    if #done.written >= 2 * MANY then redis.call('HSET', deliveries, done.written[1], LONG, unpack(done.written))
    else redis.call('HSET', deliveries, unpack(done.written)) end
  end
  if #done.strangers > 0 then forget(done.strangers) end
  if #done.ids > 0 then
    redis.call('ZREM', groups.order, unpack(done.members))
    redis.call('ZREM', groups.schedule, unpack(done.ids))
  end
  for _, each in ipairs(done.kept) do addToGroup(groups, each.group, now + LATER_MS, each.id) end
  local places = newPlaces()
  for _, one in ipairs(seats) do
    if not one.isPlain then
      local head = one.heads[one.next]
      one.state.claims = one.state.claims + one.begun
      if groups.rate and one.begun > 0 then addClaims(groups.rate, one.state.window, one.begun, now + 1) end -- up, so that no stretch is shorter
      if one.isPaused then
        push(places.noTurns, one.group)
        noteState(places, one.group, one.state.text, textOf(one.state))
        one.hasLeft = true
      else
        local at = head and head.at or one.isMore and now -- what has not been read is looked at in its turn
        if one.keptAt then at = math.min(at or one.keptAt, one.keptAt) end
        one.hasLeft = not place(groups, places, one.group, one.state, at)
      end
    end
  end
  places.noWakes = {} -- what has a turn is among no others
  return places
end

local function takeRound()
  local most = math.min(want - handed, SEATS)
  local names = namesOf(most, function(many) return redis.call('ZRANGE', groups.turns, 0, many - 1) end)
  if #names == 0 then return false end
  local slots = math.max(want - handed, leastSlots)
  local deep = (#names < most or most == 1) and math.ceil(math.min(slots, SLOTS) / #names) or 1
  if not areHeadsSmall then deep = math.min(deep, FIRST_READ) end
  local seats, isCut = seat(names, deep)
  if isCut then deep = 1 end
  local visible = 0
  for _, one in ipairs(seats) do
    for at = 1, one.isPlain and 10 or 0 do
      local here = redis.pcall('ZCOUNT', due[at], '-inf', now)
      visible = visible + (type(here) == 'number' and here or 0)
    end
  end
  -- The first turn comes before any bytes are used up, also where the messages of the groups behind it fill each poll: it is over, and the next poll
  -- begins with another one.
  local plain = {}
  if bytes == 0 and visible > 0 and seats[1].isPlain then
    claimPlainTurns(plain, 1)
    if #plain == 0 and not isFull then visible = 0 end -- none of them was a message to hand out
  end
  readSlots(seats, deep, slots, visible)
  local done = claimTurns(seats, deep, visible)
  local places = writeTurns(seats, done)
  local before = handed
  claimPlainTurns(plain, done.plain - #plain)
  local turn, turns, isPlainOver = 0, {}, visible == 0
  for _, each in ipairs(done.given) do
    if not each.one.isPlain then
      turn = turn + 1
      hand(GROUPED, each.attempts, each.delivery, each.head.id, string.format('%.0f', each.head.at), each.head.record)
      handed = handed + 1
      turns[each.one.group] = turn
    elseif plain[1] then
      turn = turn + 1
      hand(unpack(table.remove(plain, 1)))
      handed = handed + 1
      turns[PLAIN] = turn
    else
      isPlainOver = not isFull
    end
  end
  local order = {}
  for _, one in ipairs(seats) do
    local name = one.isPlain and PLAIN or one.group
    if one.isPlain and isPlainOver then push(places.noTurns, PLAIN)
    elseif turns[name] and not one.hasLeft then push(order, name) end
  end
  table.sort(order, function(a, b) return turns[a] < turns[b] end)
  for _, name in ipairs(order) do push(places.turns, nextTurn(groups), name) end
  writePlaces(groups, places)
  leastSlots = handed == before and 32 or 0
  return true
end

-- After the clock was set back, groups that wait for their rate would wait for the old time; it is later than any that the rate gives now. Delayed
-- messages have such times too: a few are looked at, each millisecond others. Returns how many have a turn now.
local function takeLate()
  local late = groups.rate and redis.call('ZCOUNT', groups.wakes, string.format('(%.0f', now + 1 + groups.rate.per), '+inf') or 0
  if late == 0 then return 0 end
  local from = redis.call('ZCARD', groups.wakes) - late + now % math.max(1, late - LATE + 1)
  local names, turns, moved = redis.call('ZRANGE', groups.wakes, from, from + LATE - 1), {}, {}
  local texts = statesOf(groups, names)
  for n, group in ipairs(names) do
    if #group <= LONGEST_GROUP and readState(groups, texts[n]).window.isMoved then
      push(turns, nextTurn(groups), group)
      push(moved, group)
    end
  end
  if #moved > 0 then
    redis.call('ZADD', groups.turns, 'NX', unpack(turns))
    redis.call('ZREM', groups.wakes, unpack(moved))
  end
  return #moved
end

takeTurns = function()
  bringTurns(groups)
  -- those whose time has come: what they have, and whether they may, is looked at in their turn
  local woken = namesOf(100, function(most) return redis.call('ZRANGEBYSCORE', groups.wakes, '-inf', now, 'LIMIT', 0, most) end)
  local turns = {}
  for _, group in ipairs(woken) do
    if #group <= LONGEST_GROUP then push(turns, nextTurn(groups), group) end
  end
  if #turns > 0 then redis.call('ZADD', groups.turns, 'NX', unpack(turns)) end
  if #woken > 0 then redis.call('ZREM', groups.wakes, unpack(woken)) end
  looked = looked + #woken + takeLate()
  arePlain = redis.call('EXISTS', unpack(due)) > 0
  local first = arePlain and earliest({unpack(due)}, LONGEST)
  if first and first <= now then redis.call('ZADD', groups.turns, 'NX', nextTurn(groups), PLAIN) end
  if isFull then return end
  if not isOrdered(groups) then -- the next poll goes on
    changed = changed + 1
    return claimPlain()
  end
  local goesOn = true -- for at least one round, however long it took to come here
  while goesOn do
    goesOn = takeRound() and not (isFull or handed >= want or looked >= MOST or isOver())
  end
end
end

if isGrouped then takeTurns() else claimPlain() end

if window and (handed > 0 or window.isMoved) then
  if handed > 0 then addClaims(rate, window, handed, math.ceil(nowExact)) end -- up, so that no stretch is shorter
  -- the caller's clock may be slower than the server's, such as one of tests
  local forMs = tonumber(ARGV[3]) < 0 and rate.per + 1000 or LONGEST_PER_MS
  local kept = redis.pcall('SET', KEYS[27], windowText(window), 'PX', forMs)
  if kept.err then note('the claims of the rate limit', kept.err) end
end
-- Also a poll that finds nothing, so that what is too old goes without another dead letter.
local dropped
if deadLettered > 0 or handed == 0 then dropped = dropDead(config, dead, deadLettered, now) end
if left or dropped then
-- include shared/batches.lua

  local batches = {key = KEYS[34], at = KEYS[35], messages = messages, inFlight = inFlight, now = now, log = log}
  if left then
    leaveBatches(batches, left.expired, 'expired')
    leaveBatches(batches, left.dead, 'dead')
    leaveBatches(batches, left.removed, 'removed')
  end
  if dropped then
    leaveBatches({key = KEYS[36], at = KEYS[37], messages = dead.messages, inFlight = KEYS[38], now = now, log = dead.log}, dropped, 'removed')
  end
end
writeChanges(log, KEYS[21], config, ARGV[12])
forgetCompleted(KEYS[24], KEYS[25], ended)
publishEnds(messages, ended)
if dead then writeChanges(dead.log, dead.changes, dead.config, ARGV[12]) end

-- After an error here the caller would get none of the messages: each would lose an attempt, and become a dead letter unseen.
local function publish(where, at)
  local published = redis.pcall('PUBLISH', where, string.format('%.0f', at))
  if type(published) == 'table' and published.err then note('the channel', published.err) end
end

-- At the limit a slot is free when a visibility ends, or when the end of a claim is announced.
local function nextTime()
  local others = earliest({inFlight, ticks}, LONGEST)
  if concurrency and claims + handed >= concurrency then return areForgedLeft and now or others end
  local first = isGrouped and (groups.isOrdered == false or redis.call('ZCARD', groups.turns) > 0) and now
    or earliest(isGrouped and {groups.wakes, unpack(arePlain and due or {})} or due, LONGEST)
  local opens = window and opensAt(rate, window)
  if first and opens then first = math.max(first, opens) end
  return first and math.min(first, others or first) or others
end

local following = nextTime()
following = following and math.ceil(following)
if settings.pollPaused == '1' then following = nil end
if handed + returned + #ticking + expired + deadLettered > 0 or ARGV[9] == '1' then
  local announced = following or now + tonumber(ARGV[8])
  if announced <= MAX then publish(channel, math.floor(announced)) end
end
if deadLettered > 0 and dead then publish(ARGV[2], now) end
local subscribers = redis.pcall('PUBSUB', 'NUMSUB', channel)
reply[1], reply[2] = string.format('%.3f', nowExact), following and string.format('%.0f', following) or ''
reply[3], reply[6], reply[7], reply[9], reply[10] = subscribers[2] or 0, expired, deadLettered, problem, changed + looked
return reply
