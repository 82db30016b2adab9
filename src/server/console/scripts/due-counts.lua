-- Count how many messages of a queue become visible in each of several equal parts of a time span. Reads no message, and counts little enough
-- at a time that the server can serve others in between.
--
-- KEYS[1] due0    zset  id -> when it is visible, epoch ms; priority 0
-- KEYS[2] due1    zset  id -> when it is visible, epoch ms; priority 1
-- KEYS[3] due2    zset  id -> when it is visible, epoch ms; priority 2
-- KEYS[4] due3    zset  id -> when it is visible, epoch ms; priority 3
-- KEYS[5] due4    zset  id -> when it is visible, epoch ms; priority 4
-- KEYS[6] due5    zset  id -> when it is visible, epoch ms; priority 5
-- KEYS[7] due6    zset  id -> when it is visible, epoch ms; priority 6
-- KEYS[8] due7    zset  id -> when it is visible, epoch ms; priority 7
-- KEYS[9] due8    zset  id -> when it is visible, epoch ms; priority 8
-- KEYS[10] due9   zset  id -> when it is visible, epoch ms; priority 9
-- KEYS[11] due10  zset  id -> when it is visible, epoch ms; of those with a group
--
-- ARGV[1] first     integer  the number of the key to begin with, 1 for the first
-- ARGV[2] at        integer  messages visible before this are overdue, epoch ms
-- ARGV[3] from      integer  where the parts begin, epoch ms
-- ARGV[4] to        integer  where they end
-- ARGV[5] partMs    integer  the length of each part; the last one can be shorter
--
-- returns {the number of the key to continue with, or 0 when all were counted, the number of overdue messages, the number of those visible from `to` on,
--   and then two values for each part that has messages: its number from 0 on, and their count}; a key of another type counts as empty
local due = {KEYS.due0, KEYS.due1, KEYS.due2, KEYS.due3, KEYS.due4, KEYS.due5, KEYS.due6, KEYS.due7, KEYS.due8, KEYS.due9, KEYS.due10}
local first, at, from, to, partMs = tonumber(ARGV.first), tonumber(ARGV.at), tonumber(ARGV.from), tonumber(ARGV.to), tonumber(ARGV.partMs)

local ASIDE, BEYOND = '9007199254740992', '18014398509481984'
local ENOUGH = 396 -- counts, and then those of one more key, at most 504: a millisecond or two together
local made, overdue, later, parts = 0, 0, 0, {}

local function count(key, least, most)
  made = made + 1
  return redis.call('ZCOUNT', key, least, most)
end

local function text(time)
  return string.format('%.0f', time)
end

-- `found`: the number of messages from one part on and before another one. A range without messages is not divided further.
local function divide(key, begin, stop, found)
  if found == 0 then return end
  if stop - begin == 1 then
    parts[begin] = (parts[begin] or 0) + found
    return
  end
  local middle = math.floor((begin + stop) / 2)
  local early = count(key, text(from + begin * partMs), '(' .. text(from + middle * partMs))
  divide(key, begin, middle, early)
  divide(key, middle, stop, found - early)
end

local number = math.ceil((to - from) / partMs)
local next = first
while next <= #due and made < ENOUGH do
  local key = due[next]
  local size = redis.pcall('ZCARD', key)
  if type(size) == 'number' and size > 0 then
    -- scores beyond all times are of messages that are set aside, as their task is paused; they were visible before
    overdue = overdue + count(key, '-inf', '(' .. text(at)) + count(key, ASIDE, '(' .. BEYOND)
    later = later + count(key, text(to), '(' .. ASIDE) + count(key, BEYOND, '+inf')
    divide(key, 0, number, count(key, text(from), '(' .. text(to)))
  end
  next = next + 1
end

local reply = {next > #due and 0 or next, overdue, later}
for part, found in pairs(parts) do
  local last = #reply
  reply[last + 1], reply[last + 2] = part, found
end
return reply
