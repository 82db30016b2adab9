-- Say when the first message of a queue becomes visible that does so from one time on and before another one.
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
-- returns the time as text, or "" where there is none; a key of another type has none
local due = {KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10], KEYS[11]}
local from, to = ARGV[1], ARGV[2]

local first = ''
for _, key in ipairs(due) do
  if redis.call('TYPE', key).ok == 'zset' then
    local found = redis.call('ZRANGEBYSCORE', key, from, '(' .. to, 'WITHSCORES', 'LIMIT', 0, 1)[2]
    if found and (first == '' or tonumber(found) < tonumber(first)) then first = found end
  end
end
return first
