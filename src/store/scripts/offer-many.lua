-- Add many entries to the schedule, all of them or, after an error, none, and announce the earliest when it became the head.
-- The caller bounds the time it takes by how many it sends.
--
-- KEYS[1] timeouts  zset  packed entry -> due time, epoch ms
-- KEYS[2] order     list  packed entries in offer order
--
-- ARGV[1] channel  text     announces the due time of a new head
-- ARGV[2] nowMs    integer  the caller's clock, or -1 for the server's
-- ARGV[3] ordered  flag     whether the entries are also in the order list
-- ARGV[4] resent   flag     whether this may have been carried out before: then entries that are there already are the caller's
-- ARGV[5] delays   text     for each entry how long after now it is due, whole milliseconds, with commas between
-- ARGV[6..] entries  bytes*  packed entries
--
-- returns {now, number of an entry, what became of it, ...} as texts; entries are counted from 0, and only those are named
--   that were not simply added: -1 when another message has the same bytes (draw a new id); -2 when the due time exceeds
--   2^53-1; the due time of one that was there already
local timeouts, order = KEYS[1], KEYS[2]
local channel, ordered, resent = ARGV[1], ARGV[3] == '1', ARGV[4] == '1'

-- include shared/milliseconds.lua

local now = milliseconds(ARGV[2])

local reply, added = {string.format('%.0f', now)}, {}
local earliest, alike -- due time of those that were added, and how many have it
local function report(number, what)
  reply[#reply + 1] = tostring(number)
  reply[#reply + 1] = what
end

local number = -1
for delay in string.gmatch(ARGV[5], '%d+') do
  number = number + 1
  local entry, due = ARGV[6 + number], now + tonumber(delay)
  if due > 9007199254740991 then
    report(number, '-2')
  elseif redis.call('ZADD', timeouts, 'NX', string.format('%.0f', due), entry) == 1 then
    added[#added + 1] = entry
    if not earliest or due < earliest then earliest, alike = due, 0 end
    if due == earliest then alike = alike + 1 end
  else
    report(number, resent and redis.call('ZSCORE', timeouts, entry) or '-1')
  end
end
if #added == 0 then return reply end

if ordered then
  local pushed = redis.pcall('RPUSH', order, unpack(added))
  if type(pushed) == 'table' and pushed.err then
    redis.call('ZREM', timeouts, unpack(added))
    return pushed
  end
end
-- as a single offer does
local text = string.format('%.0f', earliest)
local isHead = redis.call('ZCOUNT', timeouts, 0, '(' .. text) == 0
if isHead and redis.call('ZCOUNT', timeouts, text, text) > alike then
  isHead = false
  local head = redis.call('ZRANGEBYSCORE', timeouts, 0, '+inf', 'LIMIT', 0, 1)[1]
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
