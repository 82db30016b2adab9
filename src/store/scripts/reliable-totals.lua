-- Count the visible messages, those of them that a pause or a limit holds back, the groups and batches, and the completed messages that
-- are kept. Changes nothing.
--
-- KEYS[1] config    hash  the queue's settings
-- KEYS[2] inFlight  zset  priority and id -> when its visibility ends, epoch ms
-- KEYS[3] due0  zset  id -> when it is visible, epoch ms; priority 0
-- KEYS[4] due1  zset  id -> when it is visible, epoch ms; priority 1
-- KEYS[5] due2  zset  id -> when it is visible, epoch ms; priority 2
-- KEYS[6] due3  zset  id -> when it is visible, epoch ms; priority 3
-- KEYS[7] due4  zset  id -> when it is visible, epoch ms; priority 4
-- KEYS[8] due5  zset  id -> when it is visible, epoch ms; priority 5
-- KEYS[9] due6  zset  id -> when it is visible, epoch ms; priority 6
-- KEYS[10] due7  zset  id -> when it is visible, epoch ms; priority 7
-- KEYS[11] due8  zset  id -> when it is visible, epoch ms; priority 8
-- KEYS[12] due9  zset  id -> when it is visible, epoch ms; priority 9
-- KEYS[13] due10  zset  id -> when it is visible, epoch ms; messages with a group
-- KEYS[14] rate  string  the claims of the last period, if their rate is limited
-- KEYS[15] groupOrder  zset  group, due time and id of the messages with a group, in the order of their bytes
-- KEYS[16] groupTurns  zset  group -> its turn
-- KEYS[17] groupWakes  zset  group -> when it can have a turn, epoch ms
-- KEYS[18] groups  hash  group -> its claims, and when they were
-- KEYS[19] groupPauses  zset  the paused groups
-- KEYS[20] batches    hash  the batch of a message, the counts of a batch, its last message: see shared/batches.lua
-- KEYS[21] batchesAt  zset  finished batch -> when, epoch ms
-- KEYS[22] taskPauses  zset  paused task -> its number
-- KEYS[23] completedAt  zset  id of a completed message -> when, epoch ms
--
-- ARGV[1] nowMs  integer  the caller's clock, or -1 for the server's
-- ARGV[2] most   integer  the most groups with a possible message to examine, and the most paused ones; messages of further groups count as not held back
--
-- returns {visible, visible held back by a pause, by a limit, groups with a turn, groups that wait for a time, paused groups, batches
--   that have not finished, batches that have, messages in flight, paused tasks, completed messages that are kept, 1 if adding is paused, 1
--   if polling is paused, when the rate of the queue admits the next claim as text, or "" for now}
local config, inFlight = KEYS.config, KEYS.inFlight
local due = {KEYS.due0, KEYS.due1, KEYS.due2, KEYS.due3, KEYS.due4, KEYS.due5, KEYS.due6, KEYS.due7, KEYS.due8, KEYS.due9}
local turns, wakes, pauses = KEYS.groupTurns, KEYS.groupWakes, KEYS.groupPauses

-- include shared/milliseconds.lua

-- include shared/aside.lua

-- include shared/settings.lua

-- include shared/names.lua

-- include shared/record.lua

-- include shared/limits.lua

-- include shared/rate-limit.lua

-- include shared/groups.lua

local now, most = milliseconds(ARGV.nowMs), tonumber(ARGV.most)
local settings = stored(config, 'pollPaused', 'concurrency', 'rateLimit', 'grouped', 'groupConcurrency', 'groupRateLimit', 'tasks', 'addPaused', 'keepCompletedFor')
local plain = 0
for _, schedule in ipairs(due) do plain = plain + redis.call('ZCOUNT', schedule, '-inf', now) end
local grouped = redis.call('ZCOUNT', KEYS.due10, '-inf', now)
local paused, available = 0, plain

if grouped > 0 then
  local groups = openGroups({inFlight = inFlight, order = KEYS.groupOrder, states = KEYS.groups, pauses = pauses}, config, now)
  local of = groupFunctions()
  local function visibleIn(group)
    local prefix = prefixOf(group)
    return redis.call('ZLEXCOUNT', groups.order, '[' .. prefix, '(' .. placeOf(group, now + 1, ''))
  end
  -- those whose time has come; turns and pauses have none
  local function firstOf(zset)
    local upTo = zset == wakes and now or '+inf'
    return namesOf(most, function(many, from) return redis.call('ZRANGEBYSCORE', zset, '-inf', upTo, 'LIMIT', from, many) end)
  end
  local function known(names)
    local short = {}
    for _, name in ipairs(names) do
      if #name > 0 and #name <= LONGEST_GROUP then push(short, name) end
    end
    return short
  end
  for _, group in ipairs(known(firstOf(pauses))) do paused = paused + visibleIn(group) end
  -- other groups wait for the end of a claim, or for a time
  local names, isCut = firstOf(turns)
  local awake, isAwakeCut = firstOf(wakes)
  local seen, has = {}, 0
  for _, group in ipairs(awake) do push(names, group) end
  names = known(names)
  local texts = of.statesOf(groups, names)
  local inThem = 0
  for n, group in ipairs(names) do
    if not seen[group] and not of.isPausedGroup(groups, group) then
      seen[group] = true
      local here, state = visibleIn(group), of.readState(groups, texts[n])
      inThem = inThem + here
      if of.isGroupFull(groups, state) then here = 0 end
      if groups.concurrency then here = math.min(here, math.max(0, groups.concurrency - state.claims)) end
      if groups.rate then here = math.min(here, math.max(0, groups.rate.max - state.window.sum)) end
      has = has + here
    end
  end
  local isAll = not isCut and not isAwakeCut and redis.call('ZCARD', turns) <= most and redis.call('ZCOUNT', wakes, '-inf', now) <= most
  available = plain + (isAll and has or has + math.max(0, grouped - paused - inThem))
end

-- Messages that polls have set aside are visible and paused, except those that come back after their task was resumed.
local setAside, pausedTasks = 0, 0
if settings.tasks then
  local schedules = {KEYS.due10, unpack(due)}
  for _, schedule in ipairs(schedules) do setAside = setAside + redis.call('ZCOUNT', schedule, aside.text, aside.to) end
  pausedTasks = redis.call('ZCOUNT', KEYS.taskPauses, 1, aside.most)
  local back = namesOf(16, function(many, from)
    return redis.call('ZRANGEBYSCORE', KEYS.taskPauses, aside.resumed + 1, aside.resumed + aside.most, 'WITHSCORES', 'LIMIT', from, many)
  end, 2)
  paused = paused + setAside
  for n = 2, #back, 2 do
    local low, high = aside.range(tonumber(back[n]) - aside.resumed)
    for _, schedule in ipairs(schedules) do
      local here = redis.call('ZCOUNT', schedule, low, high)
      paused, available = paused - here, available + here
    end
  end
end

local opens = ''
local concurrency, rate = setting(settings.concurrency, 1, MOST_CLAIMS), rateOf(settings.rateLimit)
if concurrency then available = math.min(available, math.max(0, concurrency - claimsNow(inFlight, now))) end
if rate then
  local window = windowOf(rate, redis.call('GETRANGE', KEYS.rate, 0, LONGEST_WINDOW - 1), now)
  available = math.min(available, math.max(0, rate.max - window.sum))
  local at = opensAt(rate, window)
  opens = at and string.format('%.0f', at) or ''
end
local visible = plain + grouped + setAside
if settings.pollPaused == '1' then paused, available = visible, 0 end

-- those that are too old stay until the next acknowledgement removes them
local age = setting(settings.keepCompletedFor, 1)
local completed = redis.call('ZCOUNT', KEYS.completedAt, age and now - age or '-inf', '+inf')

local isShort = redis.call('HSTRLEN', KEYS.batches, 'n') <= 16
local unfinished = isShort and setting(redis.call('HGET', KEYS.batches, 'n'), 0) or 0
local ready = redis.call('ZCARD', turns) - (redis.call('ZSCORE', turns, '') and 1 or 0)
return {
  visible, paused, math.max(0, visible - paused - available), ready, redis.call('ZCARD', wakes), redis.call('ZCARD', pauses), unfinished,
  redis.call('ZCARD', KEYS.batchesAt), redis.call('ZCARD', inFlight), pausedTasks, completed, settings.addPaused == '1' and 1 or 0,
  settings.pollPaused == '1' and 1 or 0, opens
}
