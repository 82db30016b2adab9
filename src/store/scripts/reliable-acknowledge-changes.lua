-- Acknowledge entries of the change stream for a group. If the stream is kept for groups, remove entries that all groups have acknowledged.
--
-- KEYS[1] config   hash    the queue's settings
-- KEYS[2] changes  stream  the queue's changes
--
-- ARGV[1] group   text
-- ARGV[2] trim    flag   whether to remove entries
-- ARGV[3..] ids   text*  of entries
--
-- returns {how many of the entries the group had read and not acknowledged, the number of groups or 0 without `trim`}
local config, changes = KEYS.config, KEYS.changes

-- include shared/change-log.lua

-- include shared/stream-ids.lua

-- include shared/trim-changes.lua

local done = #ARGV > 2 and redis.call('XACK', changes, ARGV.group, unpack(ARGV, 3)) or 0
local log = logOf(config)
local groups = 0
if ARGV.trim == '1' and log and log.keep == 'g' then groups = trimChanges(changes) end
return {done, groups}
