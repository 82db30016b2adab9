-- Say that a group is done with entries of the change stream. Where the stream is kept for the groups, what all of them are done with goes.
--
-- KEYS[1] config   hash    what `setConfig` and pausing say
-- KEYS[2] changes  stream  what the scripts have changed
--
-- ARGV[1] group   text
-- ARGV[2..] ids   text*  of entries
--
-- returns how many of the entries the group had read and not acknowledged
local config, changes = KEYS[1], KEYS[2]

-- include shared/change-log.lua

-- include shared/stream-ids.lua

-- include shared/trim-changes.lua

local done = #ARGV > 1 and redis.call('XACK', changes, ARGV[1], unpack(ARGV, 2)) or 0
local log = logOf(config)
if log and log.keep == 'g' then trimChanges(changes, groupsOf(changes)) end
return done
