-- Add entries to a queue of the wheel layout: those that are due soon to the schedule, the others to the bucket of their minute. Adds all
-- of them or, after an error, none. It does not check for equal entries: an id has ten bytes or more, five of them random.
--
-- The script computes the keys of the buckets, see shared/wheel.lua. An element of a bucket is 2 bytes, the milliseconds from the start of
-- the minute to its due time, and the entry. If the key of a bucket is of another type, the entries of its minute go to the schedule.
--
-- KEYS[1] timeouts  zset  packed entry -> due time, epoch ms
-- KEYS[2] wheel     zset  minute of a bucket -> when the bucket is promoted, epoch ms
--
-- ARGV[1] channel  text     announces the time of the next transfer, if it is earlier than before
-- ARGV[2] nowMs    integer  the caller's clock, or -1 for the server's
-- ARGV[3] dated    flag     whether the delays are due times
-- ARGV[4] undeliveredUntilMs  integer  -1 for a first attempt; for a repetition, which has one entry, the server's time before which the entry of an earlier
--   attempt cannot have been delivered
-- ARGV[5] delays   text     for each entry the milliseconds from now until it is due, separated by commas; a single number applies to all
-- ARGV[6..] entries  bytes*  packed entries
--
-- returns {now, number of an entry, what became of it, ...} as texts; entries are counted from 0, and only those are named
--   that were not simply added: -2 when the due time exceeds 2^53-1; -3 for a repetition that comes too late to know whether an earlier
--   attempt was delivered or never arrived, or whose due time is in another minute than that of the earlier attempt may be, so that its
--   ticket would name one of two messages; the due time of one that was there already
local timeouts, wheel = KEYS.timeouts, KEYS.wheel
local delays, entries, undeliveredUntil = ARGV.delays, ARGV, tonumber(ARGV.undeliveredUntilMs)
local MAX = 9007199254740991

-- include shared/milliseconds.lua

-- include shared/oldest-due.lua

-- include shared/wheel.lua

-- include shared/wheel-announce.lua

local now, base = milliseconds(ARGV.nowMs), 0
if ARGV.dated ~= '1' then base = now end
local horizon = horizonOf(wheel, now)
local reply = {string.format('%.0f', base)}

if undeliveredUntil >= 0 then
  local score, due = redis.call('ZSCORE', timeouts, entries[6]), base + tonumber(delays)
  if score then
    -- written once more, because WAIT counts writes only
    redis.call('ZADD', timeouts, 0, entries[6])
    redis.call('ZADD', timeouts, score, entries[6])
    return {reply[1], '0', score}
  end
  local isSameMinute = base == 0 or undeliveredUntil >= MAX or math.floor(undeliveredUntil / MINUTE) == math.floor(due / MINUTE)
  if milliseconds(-1) >= undeliveredUntil or not isSameMinute then return {reply[1], '0', '-3'} end
  -- the earlier entry may be in the rest of a bucket that is being promoted: append this one to that bucket
  local minute = math.floor(due / MINUTE)
  if minute <= horizon and redis.call('ZSCORE', wheel, string.format('%.0f', minute)) then horizon = minute - 1 end
end

local scored, minutes, lists, sizes, earliest = {}, {}, {}, {}, nil
local isForAll = not string.find(delays, ',', 1, true)
local nextDelay, before, due, minute, offset = string.gmatch(delays, '%d+'), nil, nil, nil, nil
local char, floor, list, size = string.char, math.floor, nil, nil
for place = 6, #entries do
  local delay = isForAll and before or nextDelay()
  if delay ~= before then
    before, due = delay, base + delay
    local of = (due - due % MINUTE) / MINUTE
    local late = due - of * MINUTE
    offset = char(floor(late / 256), late % 256)
    if of ~= minute then
      minute, list = of, lists[of]
      if not list and of > horizon and due <= MAX then
        list = {}
        lists[of], sizes[of], minutes[#minutes + 1] = list, 0, of
        local promotion = promotionOf(of)
        if not earliest or promotion < earliest then earliest = promotion end
      end
    end
  end
  if due > MAX then
    reply[#reply + 1] = tostring(place - 6)
    reply[#reply + 1] = '-2'
  elseif list then
    size = sizes[minute] + 1
    sizes[minute], list[size] = size, offset .. entries[place]
  else
    scored[#scored + 1] = string.format('%.0f', due)
    scored[#scored + 1] = entries[place]
    if not earliest or due < earliest then earliest = due end
  end
end
if not earliest then return reply end

-- first: a user without the right to publish changes nothing
announceWheel(timeouts, wheel, ARGV.channel, earliest, horizon, now)
local known = {}
for _, minute in ipairs(minutes) do
  local name, list = string.format('%.0f', minute), lists[minute]
  local isThere, isNew = appendToBucket(wheel, name, list)
  if isNew then
    known[#known + 1] = string.format('%.0f', promotionOf(minute))
    known[#known + 1] = name
  elseif not isThere then
    for _, element in ipairs(list) do
      local high, low = string.byte(element, 1, 2)
      scored[#scored + 1] = string.format('%.0f', minute * MINUTE + high * 256 + low)
      scored[#scored + 1] = string.sub(element, 3)
    end
  end
end
if #known > 0 then redis.call('ZADD', wheel, unpack(known)) end
if #scored > 0 then redis.call('ZADD', timeouts, 'NX', unpack(scored)) end
return reply
