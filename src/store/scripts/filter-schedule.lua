-- Search one page of the schedule for entries that carry one of some payloads, and remove these or all others of
-- the page if asked to. The next page starts after an entry that stays, so that entries added or removed meanwhile
-- do not shift it: every entry that is pending all the time is examined.
-- A removal can walk the order list, so the clock is read after each one. Reads in small steps, as the entries can be large.
--
-- KEYS[1] timeouts  zset  packed entry -> due time, epoch ms
-- KEYS[2] order     list  packed entries in offer order
--
-- ARGV[1] afterScore  text     the score of the entry behind which the page starts; empty for the first page
-- ARGV[2] after       bytes    that entry, which can be empty if another program wrote it
-- ARGV[3] page        integer  entries to examine
-- ARGV[4] bytes       integer  the page ends with the entry that reaches this many bytes
-- ARGV[5] ordered     flag     examine only entries that are in the order list
-- ARGV[6] remove      text     `matches`, `others`, or `nothing`
-- ARGV[7] budgetUs    integer  microseconds to work before returning
-- ARGV[8..] payloads  bytes*   what to search for
--
-- returns {entries removed, 1 when this was the last page else 0, score and bytes of the entry behind which the next page
--   starts, and from 0 on the positions in `payloads` of those that were found}
local timeouts, order = KEYS.timeouts, KEYS.order
local score, after = ARGV.afterScore, ARGV.after
local page, most, budget = tonumber(ARGV.page), tonumber(ARGV.bytes), tonumber(ARGV.budgetUs)
local ordered, remove = ARGV.ordered == '1', ARGV.remove

-- include shared/elapsed.lua

-- include shared/entry-layout.lua
-- include shared/next-step.lua

local wanted = {}
for i = 8, #ARGV do wanted[ARGV[i]] = i - 8 end

local from = 0
if score ~= '' then
  if redis.call('ZSCORE', timeouts, after) == score then
    from = redis.call('ZRANK', timeouts, after) + 1
  else
    from = redis.call('ZCOUNT', timeouts, '-inf', '(' .. score)
  end
end
local removed, found, seen = 0, {}, {}
local examined, bytes, step, over, full = 0, 0, 8, false, false
while examined < page and not over and not full do
  step = math.min(step, page - examined)
  local entries = redis.call('ZRANGE', timeouts, from, from + step - 1, 'WITHSCORES')
  over = #entries < step * 2
  for i = 1, #entries, 2 do
    local entry = entries[i]
    examined = examined + 1
    bytes = bytes + #entry
    full = bytes >= most
    local start, inOrder = layout(entry)
    local position = start and wanted[string.sub(entry, start)]
    local leave = not start or (ordered and not inOrder)
    if not leave then
      if position and not seen[position] then
        seen[position] = true
        found[#found + 1] = position
      end
      leave = remove == 'nothing' or (remove == 'matches') ~= (position ~= nil)
    end
    if leave then
      score, after = entries[i + 1], entry
      from = from + 1
    else
      if inOrder then redis.call('LREM', order, 1, entry) end
      redis.call('ZREM', timeouts, entry)
      removed = removed + 1
      full = full or elapsed() >= budget
    end
    if full then
      over = over and i + 1 == #entries
      break
    end
  end
  step = nextStep(step, examined, bytes, most)
end
local reply = {removed, over and 1 or 0, score, after}
for _, position in ipairs(found) do reply[#reply + 1] = position end
return reply
