-- Look at some of the groups that have claims, or had some lately, after a limit was changed: those that may have more from now on get a turn, and those
-- who wait look at once. One page of them; the caller goes on until the cursor is 0.
--
-- KEYS[1] config      hash  what `setConfig` and pausing say
-- KEYS[2] inFlight    zset  priority and id -> when its visibility ends, epoch ms
-- KEYS[3] due10       zset  id -> when it is visible, epoch ms; of those with a group
-- KEYS[4] groupOrder  zset  group, when it is visible, and id of those with a group, in the order of their bytes
-- KEYS[5] groupTurns  zset  group -> its turn
-- KEYS[6] groupWakes  zset  group -> from when on it can have a turn, epoch ms
-- KEYS[7] groups      hash  group -> its claims, and when they were
-- KEYS[8] groupPauses  zset  the groups that are paused
--
-- ARGV[1] channel  text     announces when something becomes visible
-- ARGV[2] nowMs    integer  the caller's clock, or -1 for the server's
-- ARGV[3] cursor   text     0 for the first page
--
-- returns the cursor of the next page, 0 after the last
local channel, states, cursor = ARGV[1], KEYS[7], ARGV[3]

-- include shared/milliseconds.lua

-- include shared/settings.lua

-- include shared/names.lua

-- include shared/record.lua

-- include shared/limits.lua

-- include shared/rate-limit.lua

-- include shared/groups.lua

local keys = {inFlight = KEYS[2], schedule = KEYS[3], order = KEYS[4], turns = KEYS[5], wakes = KEYS[6], states = states, pauses = KEYS[8]}
local page, names = redis.call('HSCAN', states, cursor, 'COUNT', TOGETHER_GROUPS), {}
for at = 1, #page[2], 2 do
  if #page[2][at] <= LONGEST_GROUP then names[#names + 1] = page[2][at] end
end
local groups = openGroups(keys, KEYS[1], milliseconds(ARGV[2]))
groups.haveNone = redis.call('ZCARD', KEYS[2]) == 0 -- whatever their counts say
local areCalled = refreshGroups(groups, names, {}, true)
-- after the last one in any case: a time that was there has become another one
if areCalled or page[1] == '0' then redis.call('PUBLISH', channel, '0') end
return page[1]
