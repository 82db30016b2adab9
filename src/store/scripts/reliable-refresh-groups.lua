-- Update one page of the groups that have claims, or had some lately, after a limit was changed: groups below the new limit get a turn, and
-- waiting clients poll at once. The caller goes on until the cursor is 0.
--
-- KEYS[1] config      hash  the queue's settings
-- KEYS[2] inFlight    zset  priority and id -> when its visibility ends, epoch ms
-- KEYS[3] due10       zset  id -> when it is visible, epoch ms; messages with a group
-- KEYS[4] groupOrder  zset  group, due time and id of the messages with a group, in the order of their bytes
-- KEYS[5] groupTurns  zset  group -> its turn
-- KEYS[6] groupWakes  zset  group -> when it can have a turn, epoch ms
-- KEYS[7] groups      hash  group -> its claims, and when they were
-- KEYS[8] groupPauses  zset  the paused groups
--
-- ARGV[1] channel  text     announces when messages become visible
-- ARGV[2] nowMs    integer  the caller's clock, or -1 for the server's
-- ARGV[3] cursor   text     0 for the first page
--
-- returns the cursor of the next page, 0 after the last
local channel, states, cursor = ARGV.channel, KEYS.groups, ARGV.cursor

-- include shared/milliseconds.lua

-- include shared/settings.lua

-- include shared/names.lua

-- include shared/record.lua

-- include shared/limits.lua

-- include shared/rate-limit.lua

-- include shared/groups.lua

local keys = {inFlight = KEYS.inFlight, schedule = KEYS.due10, order = KEYS.groupOrder, turns = KEYS.groupTurns, wakes = KEYS.groupWakes, states = states, pauses = KEYS.groupPauses, isStrict = true}
local groups = openGroups(keys, KEYS.config, milliseconds(ARGV.nowMs))
readLimits(groups) -- fails, before any write, if `config` is of another type
local page, names = redis.call('HSCAN', states, cursor, 'COUNT', 8), {} -- few, because the size of other programs' fields is unknown
for at = 1, #page[2], 2 do
  if #page[2][at] <= LONGEST_GROUP then names[#names + 1] = page[2][at] end
  if #page[2][at + 1] > LONGEST_STATE then redis.call('HDEL', states, page[2][at]) end -- it would be read a second time
end
groups.haveNone = redis.call('ZCARD', KEYS.inFlight) == 0 -- whatever the counts are
local areCalled = refreshGroups(groups, names, {}, true)
-- after the last page always, because an existing time may have changed
if areCalled or page[1] == '0' then redis.call('PUBLISH', channel, '0') end
return page[1]
