-- Find where a reader of the change stream begins, and create its group if there is none yet. A group that another program has set after
-- all entries begins again with the first.
--
-- KEYS[1] config   hash    the queue's settings
-- KEYS[2] changes  stream  the queue's changes
--
-- ARGV[1] group   text     "" for a reader without one
-- ARGV[2] from    text     'start', 'end', or the id of an entry
-- ARGV[3] epoch   text     of that entry, or ""
-- ARGV[4] idleMs  integer  consumers of the group that have been idle for longer, and have nothing to acknowledge, are forgotten,
--   unless there are more than 2,000
--
-- returns {'ok', the id after which the reader begins, the epoch of the queue}; or {'off', ''} when the queue keeps no changes; where the
--   stream does not have that entry any more {'epoch' or 'rewound' or 'trimmed', ''}
local config, changes = KEYS.config, KEYS.changes
local group, from, epoch = ARGV.group, ARGV.from, ARGV.epoch

-- include shared/change-log.lua

-- include shared/stream-ids.lua

local MOST_CONSUMERS = 2000

local log = logOf(config)
if not log then return {'off', ''} end
local isThere = redis.call('EXISTS', changes) == 1
-- a lost stream takes changes with it, and the stream that a new group creates must not hide that
if not isThere and group ~= '' then
  log.epoch = epochAfter(log.epoch)
  redis.call('HSET', config, 'changes', changesWith(log, log.epoch))
end

local last = isThere and byName(redis.call('XINFO', 'STREAM', changes))['last-generated-id'] or '0-0'
if epoch ~= '' then
  if epoch ~= log.epoch then return {'epoch', ''} end
  if isBefore(last, from) then return {'rewound', ''} end
  if #redis.call('XRANGE', changes, from, from) == 0 then return {'trimmed', ''} end
end
local start = from == 'start' and '0-0' or from == 'end' and last or from
if group ~= '' then
  local made = redis.pcall('XGROUP', 'CREATE', changes, group, start, 'MKSTREAM')
  if made.err and string.sub(made.err, 1, 9) ~= 'BUSYGROUP' then return redis.error_reply(made.err) end
  local consumers = made.err and math.huge or 0 -- unknown if there are too many groups
  for _, one in ipairs(made.err and groupsOf(changes) or {}) do
    if one.name == group then
      consumers = one.consumers
      if one.isAhead then redis.call('XGROUP', 'SETID', changes, group, '0-0') end
    end
  end
  -- the server lists all of them or none, and another program's 300,000 would take seconds
  for _, flat in ipairs(consumers <= MOST_CONSUMERS and redis.call('XINFO', 'CONSUMERS', changes, group) or {}) do
    local consumer = byName(flat)
    if consumer.pending == 0 and consumer.idle > tonumber(ARGV.idleMs) then
      redis.call('XGROUP', 'DELCONSUMER', changes, group, consumer.name)
    end
  end
end
return {'ok', start, log.epoch}
