-- Count the messages of a queue by their state.
--
-- KEYS[1] messages      hash  id -> record
-- KEYS[2] config        hash  the queue's settings
-- KEYS[3] deadMessages  hash  `messages` of the dead-letter queue
-- KEYS[4] inFlight      zset  priority and id -> when its visibility ends, epoch ms
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
-- KEYS[15] due10  zset  id -> when it is visible, epoch ms; messages with a group
-- KEYS[16] taskPauses  zset  paused task -> its number
--
-- ARGV[1] nowMs  integer  the caller's clock, or -1 for the server's
--
-- returns {now as text, all, visible, delayed, in flight, dead letters, when the first is or was visible as text or "", 1 if adding is
--   paused, 1 if polling is paused, the numbers of the tasks whose messages are or can be set aside}
local messages, config, inFlight = KEYS.messages, KEYS.config, KEYS.inFlight
local due = {KEYS.due0, KEYS.due1, KEYS.due2, KEYS.due3, KEYS.due4, KEYS.due5, KEYS.due6, KEYS.due7, KEYS.due8, KEYS.due9, KEYS.due10}

-- include shared/milliseconds.lua

-- include shared/aside.lua

-- include shared/settings.lua

-- include shared/names.lua

local now = milliseconds(ARGV.nowMs)
local visible, delayed = redis.call('ZCOUNT', inFlight, '-inf', now), 0
local held = redis.call('ZCARD', inFlight) - visible
for _, schedule in ipairs(due) do
  local here = redis.call('ZCOUNT', schedule, '-inf', now)
  visible, delayed = visible + here, delayed + redis.call('ZCARD', schedule) - here
end
local settings = stored(config, 'addPaused', 'pollPaused', 'tasks')
local first
local numbers, isListed = {}, {}
local function list(number)
  if not isListed[number] and number <= aside.most then numbers[#numbers + 1] = number end
  isListed[number] = true
end

-- The least whole number from `low` to `high` for which a condition holds that holds for all greater ones; `high` if it holds for none.
-- ZCOUNT is slow where it matches a large name; with steps of a sixteenth most probes match none.
local function least(low, high, holds)
  while low < high do
    local middle = low + math.floor((high - low) / 16)
    if holds(middle) then high = middle else low = middle + 1 end
  end
  return low
end

-- When the first message of a schedule is due, or nil. After too many bytes of large names it counts, and reads no name; then nil also
-- stands for a time that is not before `first`.
local function firstOf(schedule)
  if largeNames.bytes <= largeNames.most then
    local head = redis.call('ZRANGE', schedule, 0, 0, 'WITHSCORES')
    if head[1] and #head[1] > largeNames.above then largeNames.bytes = largeNames.bytes + #head[1] end
    return tonumber(head[2])
  end
  local function isBy(time)
    return redis.call('ZCOUNT', schedule, '-inf', string.format('%.0f', time)) > 0
  end
  local most = math.min(math.ceil(first or aside.from), aside.from) - 1
  return most >= 0 and isBy(most) and least(0, most, isBy) or nil
end

for _, schedule in ipairs(due) do
  local at = firstOf(schedule)
  if at and (not first or at < first) then first = at end
end
if first and aside.has(first) then first = nil end

-- The number of the first messages that are set aside under a number from `from` on, or nil. Also lowers `first` to their time. Counts, and
-- reads no name.
local function numberFrom(schedule, from)
  local low = aside.range(from)
  if from > aside.most or redis.call('ZCOUNT', schedule, low, aside.to) == 0 then return nil end
  local number = least(from, aside.most, function(some)
    local _, high = aside.range(some)
    return redis.call('ZCOUNT', schedule, low, high) > 0
  end)
  local function isBy(time)
    return redis.call('ZCOUNT', schedule, low, string.format('%.0f', aside.from + 2 * (number * aside.span + time))) > 0
  end
  local most = math.min(math.ceil(first or aside.span), aside.span) - 1
  if most >= 0 and isBy(most) then first = least(0, most, isBy) end
  return number
end

if settings.tasks then
  local known = namesOf(aside.resumed, function(many, from)
    return redis.call('ZRANGEBYSCORE', KEYS.taskPauses, 1, aside.resumed + aside.most, 'WITHSCORES', 'LIMIT', from, many)
  end, 2)
  for n = 2, #known, 2 do list(math.floor(tonumber(known[n])) % aside.resumed) end
  for _, schedule in ipairs(due) do
    local here = redis.call('ZCOUNT', schedule, aside.text, aside.to)
    visible, delayed = visible + here, delayed - here
    -- from the first message of one task to that of the next, also of tasks that another program has removed from the paused ones
    local from = 0
    while here > 0 do
      local low, number = aside.range(from), nil
      local page, isCut = namesOf(1, function() return redis.call('ZRANGEBYSCORE', schedule, low, aside.to, 'WITHSCORES', 'LIMIT', 0, 1) end, 2, true)
      local score = tonumber(page[2])
      if score then
        if not first or aside.whenOf(score) < first then first = aside.whenOf(score) end
        number = math.floor((score - aside.from) / 2 / aside.span)
      elseif isCut then -- behind names that are too large to read
        number = numberFrom(schedule, from)
      end
      if not number then break end
      list(number)
      from = number + 1
    end
  end
end
local ended = tonumber(redis.call('ZRANGE', inFlight, 0, 0, 'WITHSCORES')[2])
if ended and ended <= now and (not first or ended < first) then first = ended end -- visible since then
return {
  string.format('%.0f', now), redis.call('HLEN', messages), visible, delayed, held, redis.call('HLEN', KEYS.deadMessages),
  first and string.format('%.0f', first) or '', settings.addPaused == '1' and 1 or 0, settings.pollPaused == '1' and 1 or 0,
  numbers
}
