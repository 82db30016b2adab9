-- Say that a group is done with entries of the change stream. Where the stream is kept for the groups, what all of them are done with goes.
--
-- KEYS[1] config   hash    what `setConfig` and pausing say
-- KEYS[2] changes  stream  what the scripts have changed
--
-- ARGV[1] group   text
-- ARGV[2] trim    flag   whether anything goes
-- ARGV[3..] ids   text*  of entries
--
-- returns {how many of the entries the group had read and not acknowledged, how many groups there are or 0 when it did not look}
local config, changes = KEYS[1], KEYS[2]

-- include shared/change-log.lua

-- include shared/stream-ids.lua

-- include shared/trim-changes.lua

local done = #ARGV > 2 and redis.call('XACK', changes, ARGV[1], unpack(ARGV, 3)) or 0
local log = logOf(config)
local groups = 0
if ARGV[2] == '1' and log and log.keep == 'g' then groups = trimChanges(changes) end
return {done, groups}
