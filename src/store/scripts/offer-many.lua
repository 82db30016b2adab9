-- Add many entries to the schedule, all of them or, after an error, none, and announce the earliest when it became the head.
-- The caller limits the script's time by the number of entries.
--
-- KEYS[1] timeouts  zset  packed entry -> due time, epoch ms
-- KEYS[2] order     list  packed entries in offer order
--
-- ARGV[1] channel  text     announces the due time of a new head
-- ARGV[2] nowMs    integer  the caller's clock, or -1 for the server's; 0 if the delays are due times
-- ARGV[3] ordered  flag     whether the entries are also in the order list
-- ARGV[4] resent   flag     whether an earlier attempt may have been carried out: then existing entries are the caller's
-- ARGV[5] delays   text     for each entry the milliseconds from now until it is due, separated by commas; a single number applies to all
-- ARGV[6..] entries  bytes*  packed entries
--
-- returns {now, number of an entry, what became of it, ...} as texts; entries are counted from 0, and only those are named
--   that were not simply added: -1 when another message has the same bytes (draw a new id); -2 when the due time exceeds
--   2^53-1; the due time of one that was there already
local timeouts, order = KEYS.timeouts, KEYS.order
local channel, ordered, resent = ARGV.channel, ARGV.ordered == '1', ARGV.resent == '1'
local MAX = 9007199254740991

-- include shared/milliseconds.lua

-- include shared/oldest-due.lua

local now = milliseconds(ARGV.nowMs)

local nowText, entries, delays, last = string.format('%.0f', now), ARGV, ARGV.delays, #ARGV
local isForAll = not string.find(delays, ',', 1, true)
local reply, added
local earliest, alike -- due time of those that were added, and how many have it
local function report(number, what)
  reply[#reply + 1] = tostring(number)
  reply[#reply + 1] = what
end

-- Calls `add` with the position, the entry, its due time and that as text; in most calls all delays are equal.
local function forEach(add)
  local nextDelay, before, due, text = string.gmatch(delays, '%d+'), nil, nil, nil
  for place = 6, last do
    local delay = isForAll and before or nextDelay()
    if delay ~= before then
      before, due = delay, now + tonumber(delay)
      text = string.format('%.0f', due)
    end
    add(place, entries[place], due, text)
  end
end

local function note(entry, due)
  added[#added + 1] = entry
  if not earliest or due < earliest then earliest, alike = due, 0 end
  if due == earliest then alike = alike + 1 end
end

-- Adds all entries at once, which takes half the time. Returns false without a change if the server cannot report at once which exist
-- (before Redis 6.2), or if an entry is given twice.
local function addTogether()
  local known = redis.pcall('ZMSCORE', timeouts, unpack(entries, 6))
  if known.err then return false end
  local scored, count = {}, 0
  forEach(function(place, entry, due, text)
    local score = known[place - 5]
    if due > MAX then
      report(place - 6, '-2')
    elseif score then
      report(place - 6, resent and score or '-1')
    else
      count = count + 1
      scored[2 * count - 1], scored[2 * count] = text, entry
      note(entry, due)
    end
  end)
  if count == 0 or redis.call('ZADD', timeouts, 'NX', unpack(scored)) == count then return true end
  redis.call('ZREM', timeouts, unpack(added))
  return false
end

local function addEach()
  forEach(function(place, entry, due, text)
    if due > MAX then
      report(place - 6, '-2')
    elseif redis.call('ZADD', timeouts, 'NX', text, entry) == 1 then
      note(entry, due)
    else
      report(place - 6, resent and redis.call('ZSCORE', timeouts, entry) or '-1')
    end
  end)
end

for _, add in ipairs({addTogether, addEach}) do
  reply, added, earliest = {nowText}, {}, nil
  if last < 6 or add() ~= false then break end
end
if #added == 0 then return reply end

if ordered then
  local pushed = redis.pcall('RPUSH', order, unpack(added))
  if type(pushed) == 'table' and pushed.err then
    redis.call('ZREM', timeouts, unpack(added))
    return pushed
  end
end
-- as for a single offer
local text, oldest = string.format('%.0f', earliest), oldestDue(now > 0 and now or milliseconds(-1), earliest)
local isHead = redis.call('ZCOUNT', timeouts, oldest, '(' .. text) == 0
if isHead and redis.call('ZCOUNT', timeouts, text, text) > alike then
  isHead = false
  local head = redis.call('ZRANGEBYSCORE', timeouts, text, '+inf', 'LIMIT', 0, 1)[1]
  for _, entry in ipairs(added) do isHead = isHead or entry == head end
end
if isHead then
  local published = redis.pcall('PUBLISH', channel, text)
  if type(published) == 'table' and published.err then -- the user may not publish: no client would transfer the entry in time
    redis.call('ZREM', timeouts, unpack(added))
    if ordered then redis.call('LTRIM', order, 0, -#added - 1) end
    return published
  end
end
return reply
