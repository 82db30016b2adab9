-- What is stored for a setting, if it is a whole number in its range: anybody can write there. `text` may also be nothing, or the
-- error of a key of another type.
local function setting(text, least, most)
  local number = type(text) == 'string' and string.match(text, '^%d+$') and tonumber(text)
  if number and number >= least and number <= (most or 9007199254740991) then return number end
end
