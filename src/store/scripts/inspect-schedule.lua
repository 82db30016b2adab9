-- Read one page of the schedule and report its entries, without the payloads. Changes nothing.
-- A page starts after `skip` entries of one due time: entries added or removed meanwhile may hide another one, but the
-- script never reports an entry that was not there.
--
-- KEYS[1] timeouts  zset  packed entry -> due time, epoch ms
--
-- ARGV[1] due   text     the due time at which the page starts; -inf for the first page
-- ARGV[2] skip  integer  entries of that due time that were examined already
-- ARGV[3] page  integer  entries to examine
--
-- returns {due time and `skip` of the next page, or "" and 0 when this was the last, entries with a negative due time,
--   others that cannot be read, those of them that are due, entries of the old format, and then for each that should be
--   in the order list its due time, and its id with the length before it or, in the old format, alone}
local timeouts, due, skip, page = KEYS.timeouts, ARGV.due, tonumber(ARGV.skip), tonumber(ARGV.page)

-- include shared/entry-layout.lua

local time = redis.call('TIME')
local now = time[1] * 1000 + time[2] / 1000

local from = redis.call('ZCOUNT', timeouts, '-inf', '(' .. due) + skip
local entries = redis.call('ZRANGE', timeouts, from, from + page - 1, 'WITHSCORES')
local negative, malformed, malformedDue, old = 0, 0, 0, 0
local ordered = {}
for i = 1, #entries, 2 do
  local entry, score = entries[i], entries[i + 1]
  if score == due then
    skip = skip + 1
  else
    due, skip = score, 1
  end
  local start, inOrder = layout(entry)
  if tonumber(score) < 0 then
    negative = negative + 1
  elseif not start then
    malformed = malformed + 1
    if tonumber(score) <= now then malformedDue = malformedDue + 1 end
  else
    -- only the old format has its payload there, see the layout
    local isOld = start == 17
    if isOld then old = old + 1 end
    if inOrder then
      ordered[#ordered + 1] = score
      ordered[#ordered + 1] = string.sub(entry, 1, isOld and 8 or start - 9)
    end
  end
end
if #entries < page * 2 then due, skip = '', 0 end
return {due, skip, negative, malformed, malformedDue, old, unpack(ordered)}
