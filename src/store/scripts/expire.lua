-- Let the keys of one object expire, if a condition holds. The first existing key decides for both, so that they expire
-- together. Does without the options of PEXPIRE, which Redis has only from 7.0 on.
--
-- KEYS[1] first   any  a key of the object
-- KEYS[2] second  any  the other key; the same again if the object has one key
--
-- ARGV[1] millis     integer  the time from now, or since the epoch
-- ARGV[2] absolute   flag     since the epoch
-- ARGV[3] condition  text     `always`; `unset`: there is no expiry yet; `set`: there is one; `greater`, `less`: than the
--   present one, none counting as endless
--
-- returns 1 when an expiry was set else 0
local command = ARGV.absolute == '1' and 'PEXPIREAT' or 'PEXPIRE'
local condition = ARGV.condition

local remaining = redis.call('PTTL', KEYS.first)
if remaining == -2 then remaining = redis.call('PTTL', KEYS.second) end
if remaining == -2 then return 0 end

local wanted = tonumber(ARGV.millis)
if ARGV.absolute == '1' then
  local time = redis.call('TIME')
  wanted = wanted - (time[1] * 1000 + math.floor(time[2] / 1000))
end
local endless = remaining == -1
if condition == 'unset' and not endless then return 0 end
if condition == 'set' and endless then return 0 end
if condition == 'greater' and (endless or wanted <= remaining) then return 0 end
if condition == 'less' and not endless and wanted >= remaining then return 0 end

redis.call(command, KEYS.first, ARGV.millis)
redis.call(command, KEYS.second, ARGV.millis)
return 1
