-- Pause or resume a group for all processes. Consumers keep the messages that they have. A resumed group gets the last turn, and waiting
-- clients poll at once.
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
-- ARGV[3] pause    flag     else it is resumed
-- ARGV[4] group    bytes
--
-- returns 1, or 0 when it was so before; resuming it then still gives it a place, which an error may have prevented
local pauses, group = KEYS.groupPauses, ARGV.group

-- include shared/milliseconds.lua

-- include shared/settings.lua

-- include shared/names.lua

-- include shared/record.lua

-- include shared/limits.lua

-- include shared/rate-limit.lua

-- include shared/groups.lua

local isPaused = redis.call('ZSCORE', pauses, group) ~= false
local pause = ARGV.pause == '1'
if isPaused and pause then return 0 end
redis.call('HLEN', KEYS.config) -- fails, before any change, if it is of another type
-- first, so that an error (no right to publish) leaves everything as it was
if isPaused then redis.call('PUBLISH', ARGV.channel, '0') end
if isPaused then redis.call('ZREM', pauses, group) elseif pause then redis.call('ZADD', pauses, 0, group) end
local keys = {inFlight = KEYS.inFlight, schedule = KEYS.due10, order = KEYS.groupOrder, turns = KEYS.groupTurns, wakes = KEYS.groupWakes, states = KEYS.groups, pauses = pauses, isStrict = true}
local calls = refreshGroup(openGroups(keys, KEYS.config, milliseconds(ARGV.nowMs)), group)
if isPaused or pause then return 1 end
if calls then redis.pcall('PUBLISH', ARGV.channel, '0') end
return 0
