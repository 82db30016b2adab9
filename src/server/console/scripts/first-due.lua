-- Find the first time in a span at which a message of a queue becomes visible, and the tasks that have messages set aside, because they are or were
-- paused.
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
-- ARGV[1] from  integer  epoch ms
-- ARGV[2] to    integer  epoch ms
--
-- returns {the time as text, or "" if there is none, 1 if no further tasks have such messages, and then the number of each task}; a key of another
--   type counts as empty
local due = {KEYS.due0, KEYS.due1, KEYS.due2, KEYS.due3, KEYS.due4, KEYS.due5, KEYS.due6, KEYS.due7, KEYS.due8, KEYS.due9, KEYS.due10}
local from, to = ARGV.from, ARGV.to

-- The messages of a task start at ASIDE + 2 * (its number * SPAN + when they were visible): see shared/aside.lua of the library.
local ASIDE, BEYOND, SPAN = 9007199254740992, '(18014398509481984', 8796093022208
local MOST = 200 -- looks for tasks

local first, isAll, looks, tasks, isListed = '', 1, 0, {}, {}
local function take(time)
  if time and (first == '' or tonumber(time) < tonumber(first)) then first = time end
end

local function firstOf(key, least, most)
  return redis.pcall('ZRANGEBYSCORE', key, least, most, 'WITHSCORES', 'LIMIT', 0, 1)[2]
end

local function placeOf(task, time)
  return string.format('%.0f', ASIDE + 2 * (task * SPAN + math.max(0, math.min(time, SPAN))))
end

for _, key in ipairs(due) do
  take(firstOf(key, from, '(' .. to))
  local place = string.format('%.0f', ASIDE)
  while place do
    local found = tonumber(firstOf(key, place, BEYOND))
    place = nil
    if found and looks == MOST then
      isAll = 0
    elseif found then
      looks = looks + 1
      local task = math.floor((found - ASIDE) / 2 / SPAN)
      if not isListed[task] then tasks[#tasks + 1] = task end
      isListed[task] = true
      local score = tonumber(firstOf(key, placeOf(task, tonumber(from)), '(' .. placeOf(task, tonumber(to))))
      if score then take(string.format('%.0f', (score - ASIDE) / 2 % SPAN)) end
      place = placeOf(task + 1, 0)
    end
  end
end
return {first, isAll, unpack(tasks)}
